package failures

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// newLimitedGateway prepares a gateway with two accounts and the settings of an overload test.
func newLimitedGateway(t *testing.T, settings ...string) *e2e.Gateway {
	t.Helper()
	return e2e.NewGateway(t, e2e.Embedded(), `{accounts: [
		{name: acme, credit: 100, tokens: [{token: acme-all-0123456, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}],
			soap: {username: acme, password: secret}, locations: [{id: yard, name: Yard, imported: true}]},
		{name: other, credit: 100, tokens: [{token: other-all-0123456, scopes: [messaging, webhook]}]},
	]}`, settings...)
}

// refusedCount returns the number of refused requests of a kind, for any reason.
func refusedCount(t *testing.T, g *e2e.Gateway, kind string) (n float64) {
	t.Helper()
	for name, v := range e2e.Metrics(t, g.WithToken("").Get("/metrics").Body) {
		if strings.HasPrefix(name, `penstock_requests_refused_total{kind="`+kind+`"`) {
			n += v
		}
	}
	return n
}

// hangingLookup starts a lookup back end whose requests hang until release is called. requests
// receives a value for each request.
func hangingLookup(t *testing.T) (url string, requests chan struct{}, release func()) {
	t.Helper()
	requests = make(chan struct{}, 10)
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	url = e2e.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests <- struct{}{}
		<-released
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status": {"code": 0}, "mcc": "234", "mnc": "15"}`)
	}))
	t.Cleanup(release)
	return url, requests, release
}

// TestAnAccountThatUsesItsShareIsRefused uses an account's share of the API with a request that hangs.
// Further API requests of the account are refused in the form of each interface. All other requests
// are served.
func TestAnAccountThatUsesItsShareIsRefused(t *testing.T) {
	t.Parallel()
	url, requests, release := hangingLookup(t)
	g := newLimitedGateway(t, "PENSTOCK_OVERLOAD_API_REQUESTS=2", "PENSTOCK_OVERLOAD_WAIT=20ms")
	g.Configure(fmt.Sprintf("lookup: {type: http, url: '%s/%%number', timeout: 1m}\n", url))
	g.Run()
	acme, customer := g.WithToken("acme-all-0123456"), e2e.CustomerOf(g)
	lookup := make(chan e2e.Response)
	go func() { resp, _ := customer.Try("GET", "/v2/network-lookup/447700900123", ""); lookup <- resp }()
	<-requests

	const overloadText = "Service temporarily unavailable. Please try again later."
	refusal := `{"message": "` + overloadText + `"}`
	soap := g.WithToken("").With("Content-Type", e2e.SOAP11Type)
	for _, tc := range []struct {
		name string
		got  e2e.Response
		want string
	}{
		{"REST v2", customer.Get("/v2/sms/credit"), refusal},
		{"REST v3", customer.Get("/v3/mno/"), `{"success": false, "message": "` + overloadText + `"}`},
		{"IoT", acme.Get("/iot/devices"), refusal},
		{"ledgers", acme.Get("/ledgers"), refusal},
	} {
		tc.got.Expect(t, 503, tc.want)
		if tc.got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: Retry-After is missing", tc.name)
		}
	}
	fault := soap.Post("/soap", e2e.SOAPEnvelope("acme", "447700900123"))
	fault.Mentions(t, 503, "<faultcode>s:Server</faultcode>", "<faultstring>"+overloadText+"</faultstring>")
	if fault.Header.Get("Retry-After") == "" {
		t.Error("SOAP: Retry-After is missing")
	}
	g.WithToken("").With("Content-Type", e2e.SOAP12Type).Post("/soap", e2e.ToSOAP12(e2e.SOAPEnvelope("acme", "447700900123"))).Mentions(t, 503, "<s:Value>s:Receiver</s:Value>")

	acme.Post("/webhooks/generic", `{"deviceId": "shed", "temperature": 4}`).Mentions(t, 200, "data")
	g.XAuth("other-all-0123456").Get("/v2/sms/credit").Mentions(t, 200, "credit")
	g.Admin().Get("/admin/events").Mentions(t, 200, "data")
	g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)
	if n := refusedCount(t, g, "api"); n != 6 {
		t.Errorf("counted refusals = %v, want 6", n)
	}
	if logLines := strings.Count(g.Logs.String(), "requests refused: the gateway is overloaded"); logLines == 0 || logLines > 6 {
		t.Errorf("log lines about refused requests = %d, want 1 to 6", logLines)
	}
	release()
	if resp := <-lookup; resp.Status != 200 {
		t.Errorf("the lookup after its release: %d %s, want 200", resp.Status, resp.Body)
	}
	customer.Get("/v2/sms/credit").Mentions(t, 200, "credit")
}

// TestRefusedFramesAreNotStored posts more frames at once than the limit allows. The journal
// has exactly the frames that were answered 200; the others are answered 503.
func TestRefusedFramesAreNotStored(t *testing.T) {
	t.Parallel()
	g := newLimitedGateway(t, "PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS=2", "PENSTOCK_OVERLOAD_WAIT=1ms")
	g.Run()
	var accepted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			c := g.WithToken("acme-all-0123456")
			for n := 0; n < 20 || refused.Load() == 0 && n < 1000; n++ {
				resp, err := c.Try("POST", "/webhooks/lorawan", fmt.Sprintf(`{"devEUI": "%016x", "n": %d}`, i, n))
				switch {
				case err != nil:
					t.Error(err)
					return
				case resp.Status == 200:
					accepted.Add(1)
				case resp.Status == 503 && resp.Header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("%d %s", resp.Status, resp.Body)
				}
			}
		})
	}
	wg.Wait()
	m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
	if got := int64(m[`penstock_entries_accepted_total{kind="uplink"}`]); got != accepted.Load() {
		t.Errorf("posts in the journal = %d, want %d, the posts with status 200", got, accepted.Load())
	}
	if got := int64(refusedCount(t, g, "webhooks")); got != refused.Load() || got == 0 {
		t.Errorf("counted refusals = %d, want %d, the posts with status 503", got, refused.Load())
	}
	for _, kind := range []string{"webhooks", "api"} {
		for _, name := range []string{"in_flight", "waiting"} {
			if n, ok := m[`penstock_requests_`+name+`{kind="`+kind+`"}`]; n != 0 || !ok {
				t.Errorf("%v %s requests are %s, want 0", n, kind, name)
			}
		}
	}
}

// TestSlowConnectionsDoNotBlockOthers opens connections that send only a part of a head or body. Slow
// connections take no slots, and are closed to make room for other connections.
func TestSlowConnectionsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	const slowCount = 60
	g := newLimitedGateway(t, "PENSTOCK_OVERLOAD_WEBHOOKS_REQUESTS=2", "PENSTOCK_OVERLOAD_CONNECTIONS=20")
	g.HTTP.Transport = &http.Transport{DisableKeepAlives: true} // the gateway would close an idle connection to make room
	g.Run()
	addr := strings.TrimPrefix(g.URL(), "http://")
	for i := range slowCount {
		conn, err := net.Dial("tcp", addr)
		relaytest.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		partialRequest := "POST /webhooks/gen"
		if i%2 == 0 {
			partialRequest = "POST /webhooks/generic HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer acme-all-0123456\r\nContent-Length: 100\r\n\r\n{"
		}
		_, err = io.WriteString(conn, partialRequest)
		relaytest.NoError(t, err)
		if i%10 == 0 {
			g.WithToken("acme-all-0123456").Post("/webhooks/lorawan", fmt.Sprintf(`{"devEUI": "70b3d57ed0000001", "n": %d}`, i)).Expect(t, 200, "")
			g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)
		}
	}
	if refusedCount(t, g, "connections") == 0 { // slow connections that ended by a timeout do not count
		t.Error("no slow connection was closed to make room")
	}
	if n := refusedCount(t, g, "webhooks"); n != 0 {
		t.Errorf("refused posts = %v, want 0", n)
	}
}
