// Package sending tests messages of accounts end to end: over SMSCs, Kannel and HTTP carriers, by
// REST v2 and SOAP.
package sending

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// senderInventory returns an inventory with an account that may send.
func senderInventory(credit int) string {
	return fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-token-0123456, scopes: [messaging, carrier]}]}]", credit)
}

// newSender runs a gateway with a carrier and an account that may send, and returns the gateway
// and a client of the account.
func newSender(t *testing.T, carrier string, settings ...string) (*e2e.Gateway, e2e.Client) {
	t.Helper()
	g := e2e.NewGateway(t, e2e.Embedded(), senderInventory(100), settings...)
	g.Configure("carriers:\n" + carrier)
	g.Run()
	return g, g.XAuth("acme-token-0123456")
}

// TestSendingToAnSMSC sends over a bind to an SMSC that sends receipts of every form.
func TestSendingToAnSMSC(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), e2e.NewSink(t, nil)
	g, acme := newSender(t, peer.CarrierConfig("one", "answer_timeout: 1s", "window: 5"))
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
	for _, message := range acme.SendMessages(e2e.SendBody(t, sink.URL, nil, numbers...)) {
		ids[message.Destination] = fmt.Sprint(message.ID)
	}
	e2e.AwaitReports(t, sink, want...)
	for _, req := range sink.Requests("/dlr") {
		number, timestamp := req.Query.Get("to"), req.Query.Get("at")
		if req.Query.Get("id") != ids[number] || !strings.Contains(req.Query.Get("dlr"), "stat:") || len(timestamp) != len(fmt.Sprint(time.Now().Unix())) {
			t.Errorf("report of %s = %v, want the id %s, a stat and a timestamp", number, req.Query, ids[number])
		}
	}
	relaytest.Eventually(t, "no receipt is unrouted, not even an early receipt or a repeated id", func() (any, bool) {
		events := g.Events("kind=receipt&state=unrouted")
		return events, len(events) == 0
	})
	submissions := make(map[string]int)
	for _, e := range peer.Events() {
		submissions[e.Destination]++
	}
	for _, number := range numbers {
		want := 1
		if strings.HasSuffix(number, "06") || strings.HasSuffix(number, "07") {
			want = 2 // the first submission was throttled
		}
		if submissions[number] != want {
			t.Errorf("%s was submitted %d times, want %d", number, submissions[number], want)
		}
	}
	acme.Get("/v2/sms/credit").Expect(t, 200, fmt.Sprintf(`{"data":{"credit":%d}}`, 100-len(numbers)))
	acme.Get("/v2/sms/pending").Mentions(t, 200, `"data":[]`)
}

// TestSubmissionsToAnSMSC checks the PDUs of each kind of message.
func TestSubmissionsToAnSMSC(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), e2e.NewSink(t, nil)
	_, acme := newSender(t, peer.CarrierConfig("one"))
	long := strings.Repeat("0123456789", 20)
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": "héllo €"}, "447700900200"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": "Привет", "flash": true, "originator": "Example"}, "447700900300"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"replace": true}, "447700900400"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"message": long}, "447700900500"))
	acme.SendMessages(e2e.SendBody(t, sink.URL, map[string]any{"send_time": time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)}, "447700900600"))
	if acme.Get("/v2/sms/pending").Body == `{"data":[]}` {
		t.Error("the scheduled message is not pending")
	}
	for number, want := range map[string][]e2e.SMSCEvent{
		"447700900200": {{From: "447700900999", Text: "héllo €"}},
		"447700900300": {{From: "Example", Coding: 0x18, Text: "Привет"}},
		"447700900400": {{From: "447700900999", Text: "hello", Protocol: 0x41, Replace: 1}},
		"447700900500": {{From: "447700900999", Text: long[:153], Class: 0x40, Part: "0201"}, {From: "447700900999", Text: long[153:], Class: 0x40, Part: "0202"}},
		"447700900600": {{From: "447700900999", Text: "hello"}},
	} {
		var got []e2e.SMSCEvent
		relaytest.Eventually(t, "the message to "+number, func() (any, bool) {
			got = nil
			for _, e := range peer.Events() {
				if e.Destination == number {
					e.Destination, e.BindCommand, e.Part = "", "", e.Part[max(0, len(e.Part)-4):]
					got = append(got, e)
				}
			}
			return got, len(got) == len(want)
		})
		relaytest.Equal(t, "the submissions to "+number, got, want)
	}
	e2e.AwaitReports(t, sink, "447700900200:8", "447700900200:1", "447700900300:8", "447700900300:1", "447700900400:8", "447700900400:1",
		"447700900500:8", "447700900500:1", "447700900600:8", "447700900600:1")
}

// TestSendingWithoutABind sends over a carrier that cannot be reached. The reason of the message says
// that the carrier is not bound.
func TestSendingWithoutABind(t *testing.T) {
	t.Parallel()
	g, acme := newSender(t, "  - {type: smpp, name: one, addr: '127.0.0.1:1'}\n")
	acme.SendMessages(e2e.SendBody(t, "https://example.com", nil, "447700900123"))
	relaytest.Eventually(t, "the message's reason is that the carrier is not bound", func() (any, bool) {
		body := g.Admin().Get("/admin/messages?account=1").Body
		return body, strings.Contains(body, `"reason":"waiting: carrier \"one\" is not bound"`)
	})
}

// TestKillWhileSending kills the gateway while it sends over a bind. No message is submitted twice,
// and every acknowledged message is submitted or unknown.
func TestKillWhileSending(t *testing.T) {
	t.Parallel()
	peer, sink := e2e.StartSMSC(t), e2e.NewSink(t, nil)
	const orders = 30
	g := e2e.NewGateway(t, e2e.Embedded(), senderInventory(10*orders))
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "window: 5"))
	g.Spawn()
	acknowledged := make(map[string]bool)
	for i := range orders {
		var numbers []string
		for n := range 10 {
			numbers = append(numbers, fmt.Sprintf("4477%06d00", i*10+n))
		}
		answer, err := g.XAuth("acme-token-0123456").Try("POST", "/v2/sms/send", e2e.SendBody(t, sink.URL, nil, numbers...))
		if err == nil && answer.Status == 200 {
			for _, n := range numbers {
				acknowledged[n] = true
			}
		}
		if i%10 == 9 {
			g.Kill()
			g.Spawn()
		}
	}
	submissions := func() map[string]int {
		got := make(map[string]int)
		for _, e := range peer.Events() {
			if e.Destination != "" {
				got[e.Destination]++
			}
		}
		return got
	}
	relaytest.Eventually(t, "every acknowledged message is submitted or unknown", func() (any, bool) {
		got, submitted := submissions(), 0
		for number := range acknowledged {
			if got[number] > 0 {
				submitted++
			}
		}
		unknown := unknownParts(g)
		return fmt.Sprint(submitted, " submitted, ", unknown, " unknown of ", len(acknowledged)), submitted+unknown >= len(acknowledged)
	})
	for number, n := range submissions() {
		if n > 1 {
			t.Errorf("submissions of %s = %d, want at most 1", number, n)
		}
	}
	g.Terminate()
}

// TestSimulatedNetwork sends without a configured carrier. The simulated network reports by the
// last digits of the number, even after the gateway was killed.
func TestSimulatedNetwork(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	g := e2e.NewGateway(t, e2e.Embedded(), senderInventory(100))
	g.Spawn()
	acme := g.XAuth("acme-token-0123456")
	acme.SendMessages(e2e.SendBody(t, sink.URL, nil, "447700900123", "447700909001", "447700909002", "447700909003", "447700909004"))
	g.Kill()
	g.Spawn()
	e2e.AwaitReports(t, sink, "447700900123:8", "447700900123:1", "447700909001:16", "447700909002:8", "447700909002:4", "447700909002:1",
		"447700909003:8", "447700909004:8", "447700909004:2")
	g.Terminate()
}

// TestHTTPCarrier sends over HTTP with JSON to a carrier that posts its reports to the URL in the
// request.
func TestHTTPCarrier(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	partner := e2e.NewSink(t, nil)
	g, acme := newSender(t, "  - {type: http, name: partner, url: '"+partner.URL+"/sms', token: secret}\n", "PENSTOCK_LISTEN="+porttest.Address(t))
	acme.SendMessages(e2e.SendBody(t, sink.URL, nil, "447700900123"))
	req := partner.Await(t, "/sms", 1)
	var m struct {
		ID        string
		To        string
		ReportURL string `json:"report_url"`
	}
	relaytest.NoError(t, json.Unmarshal([]byte(req.Body), &m))
	if req.Header.Get("Idempotency-Key") != m.ID || req.Header.Get("Authorization") != "Bearer secret" || m.To != "447700900123" {
		t.Errorf("the carrier received %s with %v, want an Idempotency-Key, the token and the number", req.Body, req.Header)
	}
	reportURL, err := url.Parse(m.ReportURL)
	relaytest.NoError(t, err)
	e2e.AwaitReports(t, sink, "447700900123:8")
	report := reportURL.RequestURI()
	g.WithToken("").Post(strings.Replace(report, "sig=", "sig=0", 1), `{"state":"DELIVRD"}`).Mentions(t, 401)
	g.WithToken("").Post(report, `{"state":"PERHAPS"}`).Mentions(t, 422, "state")
	g.WithToken("").Post(report, `{"state":"ENROUTE"}`).Mentions(t, 200, `"id"`)
	g.WithToken("").Get(report+"&code=1").Mentions(t, 200, `"id"`)
	e2e.AwaitReports(t, sink, "447700900123:8", "447700900123:4", "447700900123:1")
	g.WithToken("acme-token-0123456").Post("/inbound/dlr/json", `{"ref":"99-1-0","code":1}`).Mentions(t, 200)
	relaytest.Eventually(t, "a report about another account's message is unrouted", func() (any, bool) {
		events := g.Events("kind=receipt&state=unrouted")
		return events, len(events) == 1
	})
}

// unknownParts returns the number of parts in the state unknown.
func unknownParts(g *e2e.Gateway) (n int) {
	g.T.Helper()
	var list struct {
		Data []struct{ Parts []struct{ State string } }
	}
	g.Admin().Get("/admin/messages?account=1&state=unknown&limit=1000").Decode(g.T, &list)
	for _, m := range list.Data {
		for _, p := range m.Parts {
			if p.State == "unknown" {
				n++
			}
		}
	}
	return n
}
