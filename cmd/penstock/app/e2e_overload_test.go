package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// overloaded is a gateway with small bounds.
func overloaded(t *testing.T, settings ...string) *gateway {
	t.Helper()
	g := newGateway(t, &site{name: "embedded"}, `{accounts: [
		{name: acme, credit: 100, tokens: [{token: acme-all-0123456, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}],
			soap: {username: acme, password: secret}, locations: [{id: yard, name: Yard, imported: true}]},
		{name: other, credit: 100, tokens: [{token: other-all-0123456, scopes: [messaging, webhook]}]},
	]}`, settings...)
	return g
}

// refusedOf sums the refusals of a kind, for whatever reason.
func (g *gateway) refusedOf(t *testing.T, kind string) (n float64) {
	t.Helper()
	for name, v := range metrics(t, g.as("").get("/metrics").body) {
		if strings.HasPrefix(name, `penstock_requests_refused_total{kind="`+kind+`"`) {
			n += v
		}
	}
	return n
}

// hangingLookup is a lookup back end that answers when it is let go.
func hangingLookup(t *testing.T) (url string, asked chan struct{}, letGo func()) {
	t.Helper()
	asked = make(chan struct{}, 10)
	end := make(chan struct{})
	letGo = sync.OnceFunc(func() { close(end) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-end
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status": {"code": 0}, "mcc": "234", "mnc": "15"}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(letGo)
	return server.URL, asked, letGo
}

// An account whose requests hang uses up its share of the API: further ones are
// refused in each surface's own form, and nothing else is.
func TestAnAccountThatUsesItsShareIsRefused(t *testing.T) {
	url, asked, letGo := hangingLookup(t)
	g := overloaded(t, "PENSTOCK_OVERLOAD_API_REQUESTS=2", "PENSTOCK_OVERLOAD_WAIT=20ms")
	g.file = filepath.Join(g.dir, "penstock.yaml")
	must(t, os.WriteFile(g.file, []byte(fmt.Sprintf("lookup: {type: http, url: '%s/%%number', timeout: 1m}\n", url)), 0o600))
	g.run()
	acme, x := g.as("acme-all-0123456"), g.as("").with("X-Auth-Token", "acme-all-0123456")
	looked := make(chan answer)
	go func() { a, _ := x.try("GET", "/v2/network-lookup/447700900123", ""); looked <- a }()
	<-asked

	const later = "Service temporarily unavailable. Please try again later."
	refusal := `{"message": "` + later + `"}`
	soap := g.as("").with("Content-Type", soapType11)
	for _, tc := range []struct {
		name string
		got  answer
		want string
	}{
		{"REST v2", x.get("/v2/sms/credit"), refusal},
		{"REST v3", x.get("/v3/mno/"), `{"success": false, "message": "` + later + `"}`},
		{"IoT", acme.get("/iot/devices"), refusal},
		{"ledgers", acme.get("/ledgers"), refusal},
	} {
		tc.got.is(t, 503, tc.want)
		if tc.got.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", tc.name)
		}
	}
	fault := soap.post("/soap", enveloped("acme", "447700900123"))
	fault.mentions(t, 503, "<faultcode>s:Server</faultcode>", "<faultstring>"+later+"</faultstring>")
	if fault.header.Get("Retry-After") == "" {
		t.Error("SOAP: no Retry-After")
	}
	g.as("").with("Content-Type", soapType12).post("/soap", inSOAP12(enveloped("acme", "447700900123"))).mentions(t, 503, "<s:Value>s:Receiver</s:Value>")

	acme.post("/webhooks/generic", `{"deviceId": "shed", "temperature": 4}`).mentions(t, 200, "data")
	g.as("").with("X-Auth-Token", "other-all-0123456").get("/v2/sms/credit").mentions(t, 200, "credit")
	g.admin().get("/admin/events").mentions(t, 200, "data")
	g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)
	if n := g.refusedOf(t, "api"); n != 6 {
		t.Errorf("%v refusals are counted, want 6", n)
	}
	if logged := strings.Count(g.logs.String(), "requests refused: the gateway is overloaded"); logged == 0 || logged > 6 {
		t.Errorf("%d lines of log", logged)
	}
	letGo()
	if a := <-looked; a.status != 200 {
		t.Errorf("the lookup that hung: %d %s", a.status, a.body)
	}
	x.get("/v2/sms/credit").mentions(t, 200, "credit")
}

// Posts beyond the bound get 503 and leave nothing behind: what is journalled is
// what was answered with 200.
func TestRefusedFramesAreNotStored(t *testing.T) {
	g := overloaded(t, "PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS=2", "PENSTOCK_OVERLOAD_WAIT=1ms")
	g.run()
	var accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			c := g.as("acme-all-0123456")
			for n := 0; n < 20 || refused.Load() == 0 && n < 1000; n++ {
				a, err := c.try("POST", "/webhooks/lorawan", fmt.Sprintf(`{"devEUI": "%016x", "n": %d}`, i, n))
				switch {
				case err != nil:
					t.Error(err)
					return
				case a.status == 200:
					accepted.Add(1)
				case a.status == 503 && a.header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
	m := metrics(t, g.as("").get("/metrics").body)
	if got := int64(m[`penstock_accepted_total{kind="uplink"}`]); got != accepted.Load() {
		t.Errorf("%d are journalled, %d were answered with 200", got, accepted.Load())
	}
	if got := int64(g.refusedOf(t, "webhooks")); got != refused.Load() || got == 0 {
		t.Errorf("%d refusals are counted, %d were answered", got, refused.Load())
	}
	for _, kind := range []string{"webhooks", "api"} {
		for _, name := range []string{"in_flight", "waiting"} {
			if n, ok := m[`penstock_requests_`+name+`{kind="`+kind+`"}`]; n != 0 || !ok {
				t.Errorf("%v %s are %s", n, kind, name)
			}
		}
	}
}

// Clients whose heads and bodies come slowly take neither slots nor all connections.
func TestSlowConnectionsDoNotKeepOutOthers(t *testing.T) {
	const slow = 200
	g := overloaded(t, "PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS=2", "PENSTOCK_OVERLOAD_CONNECTIONS=100")
	g.web.Transport = &http.Transport{DisableKeepAlives: true} // an idle connection makes room for others
	g.run()
	addr := strings.TrimPrefix(g.url(), "http://")
	for i := range slow {
		conn, err := net.Dial("tcp", addr)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		begin := "POST /webhooks/gen"
		if i%2 == 0 {
			begin = "POST /webhooks/generic HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer acme-all-0123456\r\nContent-Length: 100\r\n\r\n{"
		}
		_, err = io.WriteString(conn, begin)
		must(t, err)
		if i%10 == 0 {
			g.as("acme-all-0123456").post("/webhooks/lorawan", fmt.Sprintf(`{"devEUI": "70b3d57ed0000001", "n": %d}`, i)).is(t, 200, "")
			g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)
		}
	}
	if g.refusedOf(t, "connections") == 0 { // the others had ended by themselves, if this took long
		t.Error("no connection made room")
	}
	if n := g.refusedOf(t, "webhooks"); n != 0 {
		t.Errorf("%v posts were refused", n)
	}
}
