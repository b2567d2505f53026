package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/porttest"
)

// senderInventory has an account that may send.
func senderInventory(credit int) string {
	return fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-token-0123456, scopes: [messaging, carrier]}]}]", credit)
}

// order is the body of a send.
func order(t *testing.T, sink string, more map[string]any, to ...string) string {
	t.Helper()
	body := map[string]any{
		"destinations": to, "message": "hello", "originator": "447700900999",
		"dlr_url": sink + "/dlr?id=%msgid&to=%dest&code=%code&at=%timestamp&dlr=%dlr",
	}
	for key, value := range more {
		body[key] = value
	}
	raw, err := json.Marshal(body)
	must(t, err)
	return string(raw)
}

// sent is one entry of send's answer.
type sent struct {
	ID          int64
	Destination string
}

// send sends an order and returns its entries.
func (c caller) send(body string) []sent {
	c.g.t.Helper()
	var list struct{ Data []sent }
	c.post("/v2/sms/send", body).into(c.g.t, &list)
	return list.Data
}

// reports waits until a sink has had exactly some reports, as number:code, in any
// order, each once.
func reports(t *testing.T, k *sink, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, "reports "+strings.Join(want, " "), func() (any, bool) {
		got := reported(k)
		return got, slices.Equal(got, want)
	})
}

func reported(k *sink) (got []string) {
	for _, h := range k.at("/dlr") {
		got = append(got, h.query.Get("to")+":"+h.query.Get("code"))
	}
	slices.Sort(got)
	return got
}

// TestSendingToAnSMSC sends over a bind, to an SMSC that reports in every form.
func TestSendingToAnSMSC(t *testing.T) {
	t.Parallel()
	peer, k := startSMSC(t), newSink(t, nil)
	g := newGateway(t, &site{name: "embedded"}, senderInventory(100))
	g.configure("carriers:\n" + peer.carrier("one", "answer_timeout: 1s", "window: 5"))
	g.run()
	acme := g.as("").with("X-Auth-Token", "acme-token-0123456")
	var numbers, want []string
	for suffix, codes := range map[string]string{
		"00": "8 1", "01": "8 1", "02": "8 1", "03": "8 1", "04": "8 1", "05": "8 1", "06": "8 1", "07": "8 1", "08": "8 1",
		"09": "8 2", "10": "8 4 1", "11": "16", "12": "", "13": "8 1", "14": "8 2", "15": "8 1",
	} {
		number := "4477009001" + suffix
		numbers = append(numbers, number)
		for _, code := range strings.Fields(codes) {
			want = append(want, number+":"+code)
		}
	}
	ids := make(map[string]string)
	for _, one := range acme.send(order(t, k.url, nil, numbers...)) {
		ids[one.Destination] = fmt.Sprint(one.ID)
	}
	reports(t, k, want...)
	for _, h := range k.at("/dlr") {
		to, at := h.query.Get("to"), h.query.Get("at")
		if h.query.Get("id") != ids[to] || !strings.Contains(h.query.Get("dlr"), "stat:") || len(at) != len(fmt.Sprint(time.Now().Unix())) {
			t.Errorf("the report of %s: %v", to, h.query)
		}
	}
	eventually(t, "what came early, or with an id that was used before, is not quarantined", func() (any, bool) {
		set := g.events("kind=receipt&state=unrouted")
		return set, len(set) == 0
	})
	times := make(map[string]int)
	for _, e := range peer.all() {
		times[e.Submitted]++
	}
	for _, number := range numbers {
		want := 1
		if strings.HasSuffix(number, "06") || strings.HasSuffix(number, "07") {
			want = 2 // the first was throttled
		}
		if times[number] != want {
			t.Errorf("%s was submitted %d times", number, times[number])
		}
	}
	acme.get("/v2/sms/credit").is(t, 200, fmt.Sprintf(`{"data":{"credit":%d}}`, 100-len(numbers)))
	acme.get("/v2/sms/pending").mentions(t, 200, `"data":[]`)
}

// TestSendingFormsToAnSMSC checks what the SMSC sees of each kind of message.
func TestSendingFormsToAnSMSC(t *testing.T) {
	t.Parallel()
	peer, k := startSMSC(t), newSink(t, nil)
	g := newGateway(t, &site{name: "embedded"}, senderInventory(100))
	g.configure("carriers:\n" + peer.carrier("one"))
	g.run()
	acme := g.as("").with("X-Auth-Token", "acme-token-0123456")
	long := strings.Repeat("0123456789", 20)
	acme.send(order(t, k.url, map[string]any{"message": "héllo €"}, "447700900200"))
	acme.send(order(t, k.url, map[string]any{"message": "Привет", "flash": true, "originator": "Example"}, "447700900300"))
	acme.send(order(t, k.url, map[string]any{"replace": true}, "447700900400"))
	acme.send(order(t, k.url, map[string]any{"message": long}, "447700900500"))
	acme.send(order(t, k.url, map[string]any{"send_time": time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)}, "447700900600"))
	if acme.get("/v2/sms/pending").body == `{"data":[]}` {
		t.Error("what is scheduled is not pending")
	}
	for to, want := range map[string][]smscEvent{
		"447700900200": {{From: "447700900999", Text: "héllo €"}},
		"447700900300": {{From: "Example", Coding: 0x18, Text: "Привет"}},
		"447700900400": {{From: "447700900999", Text: "hello", Protocol: 0x41, Replace: 1}},
		"447700900500": {{From: "447700900999", Text: long[:153], Class: 0x40, Part: "0201"}, {From: "447700900999", Text: long[153:], Class: 0x40, Part: "0202"}},
		"447700900600": {{From: "447700900999", Text: "hello"}},
	} {
		var got []smscEvent
		eventually(t, "the message to "+to, func() (any, bool) {
			got = nil
			for _, e := range peer.all() {
				if e.Submitted == to {
					e.Submitted, e.Part = "", e.Part[max(0, len(e.Part)-4):]
					got = append(got, e)
				}
			}
			return got, len(got) == len(want)
		})
		for i := range want {
			if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
				t.Errorf("to %s, part %d:\ngot  %+v\nwant %+v", to, i+1, got[i], want[i])
			}
		}
	}
	reports(t, k, "447700900200:8", "447700900200:1", "447700900300:8", "447700900300:1", "447700900400:8", "447700900400:1",
		"447700900500:8", "447700900500:1", "447700900600:8", "447700900600:1")
}

// TestSendingWithoutABind sends over a carrier that is not there: the message says
// what it waits for.
func TestSendingWithoutABind(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, senderInventory(100))
	g.configure("carriers:\n  - {type: smpp, name: one, addr: '127.0.0.1:1'}\n")
	g.run()
	g.as("").with("X-Auth-Token", "acme-token-0123456").send(order(t, "https://example.com", nil, "447700900123"))
	eventually(t, "the message says that the carrier is not bound", func() (any, bool) {
		body := g.admin().get("/admin/messages?account=1").body
		return body, strings.Contains(body, `"reason":"waits: the carrier one is not bound: waiting: connect: `)
	})
}

// TestSendingKill kills the gateway while it sends over a bind. What the SMSC has
// got it has got once; each message is reported, or unknown.
func TestSendingKill(t *testing.T) {
	t.Parallel()
	peer, k := startSMSC(t), newSink(t, nil)
	const orders = 30
	g := newGateway(t, &site{name: "embedded"}, senderInventory(10*orders))
	g.configure("carriers:\n" + peer.carrier("one", "window: 5"))
	g.spawn()
	taken := make(map[string]bool)
	for i := range orders {
		var numbers []string
		for n := range 10 {
			numbers = append(numbers, fmt.Sprintf("4477%06d00", i*10+n))
		}
		answer, err := g.as("").with("X-Auth-Token", "acme-token-0123456").try("POST", "/v2/sms/send", order(t, k.url, nil, numbers...))
		if err == nil && answer.status == 200 {
			for _, n := range numbers {
				taken[n] = true
			}
		}
		if i%10 == 9 {
			g.kill()
			g.spawn()
		}
	}
	times := func() map[string]int {
		got := make(map[string]int)
		for _, e := range peer.all() {
			if e.Submitted != "" {
				got[e.Submitted]++
			}
		}
		return got
	}
	eventually(t, "everything taken is submitted or unknown", func() (any, bool) {
		got, known := times(), 0
		for number := range taken {
			if got[number] > 0 {
				known++
			}
		}
		unknown := unknownIn(g)
		return fmt.Sprint(known, " submitted, ", unknown, " unknown of ", len(taken)), known+unknown >= len(taken)
	})
	for number, n := range times() {
		if n > 1 {
			t.Errorf("%s was submitted %d times", number, n)
		}
	}
	g.terminate()
}

// TestSimulatedNetwork sends with nothing configured: the simulator reports like
// a network, by the last digits of the number, also when the gateway is killed.
func TestSimulatedNetwork(t *testing.T) {
	t.Parallel()
	k := newSink(t, nil)
	g := newGateway(t, &site{name: "embedded"}, senderInventory(100))
	g.spawn()
	acme := g.as("").with("X-Auth-Token", "acme-token-0123456")
	acme.send(order(t, k.url, nil, "447700900123", "447700909001", "447700909002", "447700909003", "447700909004"))
	g.kill()
	g.spawn()
	reports(t, k, "447700900123:8", "447700900123:1", "447700909001:16", "447700909002:8", "447700909002:4", "447700909002:1",
		"447700909003:8", "447700909004:8", "447700909004:2")
	g.terminate()
}

// TestHTTPCarrier sends over a carrier that takes JSON, which reports at the address
// it was given.
func TestHTTPCarrier(t *testing.T) {
	t.Parallel()
	k := newSink(t, nil)
	partner := newSink(t, nil)
	addr := porttest.Address(t)
	g := newGateway(t, &site{name: "embedded"}, senderInventory(100), "PENSTOCK_LISTEN="+addr)
	g.configure("carriers:\n  - {type: http, name: partner, url: '" + partner.url + "/sms', token: secret}\n")
	g.run()
	acme := g.as("").with("X-Auth-Token", "acme-token-0123456")
	acme.send(order(t, k.url, nil, "447700900123"))
	h := partner.await(t, "/sms", 1)
	var m struct {
		ID        string
		To        string
		ReportURL string `json:"report_url"`
	}
	must(t, json.Unmarshal([]byte(h.body), &m))
	if h.header.Get("Idempotency-Key") != m.ID || h.header.Get("Authorization") != "Bearer secret" || m.To != "447700900123" {
		t.Errorf("the carrier got %s with %v", h.body, h.header)
	}
	at, err := url.Parse(m.ReportURL)
	must(t, err)
	reports(t, k, "447700900123:8")
	report := at.RequestURI()
	g.as("").post(strings.Replace(report, "sig=", "sig=0", 1), `{"state":"DELIVRD"}`).mentions(t, 401)
	g.as("").post(report, `{"state":"PERHAPS"}`).mentions(t, 422, "state")
	g.as("").post(report, `{"state":"ENROUTE"}`).mentions(t, 200, `"id"`)
	g.as("").get(report+"&code=1").mentions(t, 200, `"id"`)
	reports(t, k, "447700900123:8", "447700900123:4", "447700900123:1")
	g.as("acme-token-0123456").post("/inbound/dlr/json", `{"ref":"99-1-0","code":1}`).mentions(t, 200)
	eventually(t, "a report about another account's message is quarantined", func() (any, bool) {
		set := g.events("kind=receipt&state=unrouted")
		return set, len(set) == 1
	})
}

// unknownIn counts the parts whose outcome is not known.
func unknownIn(g *gateway) (n int) {
	g.t.Helper()
	var list struct {
		Data []struct{ Parts []struct{ State string } }
	}
	g.admin().get("/admin/messages?account=1&state=unknown&limit=1000").into(g.t, &list)
	for _, m := range list.Data {
		for _, p := range m.Parts {
			if p.State == "unknown" {
				n++
			}
		}
	}
	return n
}
