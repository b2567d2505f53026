package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func says(t *testing.T, label, text string, parts ...string) {
	t.Helper()
	remaining := text
	for _, p := range parts {
		_, suffix, ok := strings.Cut(remaining, p)
		if !ok {
			t.Errorf("%s does not contain %q at its place:\n%s", label, p, text)
			return
		}
		remaining = suffix
	}
}

// TestTheTraceOfAMessage checks the steps of messages: received, joined, routed, attempted.
func TestTheTraceOfAMessage(t *testing.T) {
	t.Parallel()
	g, k, _ := e2e.StartWithRelays(t, e2e.Embedded(), func(w http.ResponseWriter, _ e2e.SinkRequest, earlier int) {
		if earlier == 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}, "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	acme := g.As("acme-all-0123456")
	part := func(n int) string {
		return acme.PostInbound(map[string]any{"id": fmt.Sprint("part", n), "from": "447700900123", "to": "447800020001", "text": fmt.Sprint("p", n), "udh": fmt.Sprintf("05000377020%d", n)})
	}
	second := part(2)
	g.AwaitProcessed()
	says(t, "a part that waits", g.Trace(second), "received : from json, by account acme (1); safe on disk", "read : from 447700900123 to 447800020001, coding 7",
		"joined : part 2 of 2; waits for the others", "0 deliveries")
	first := part(1)
	k.Await(t, "/vmn-post", 2)
	g.AwaitDelivery("v-post", "delivered")
	steps := []string{"received", "joined", "of the message " + first, "routed", "relay v-post: delivery", "attempt", "attempt 1: answered 502", "attempt 2: answered 200", "is delivered", "1 deliveries"}
	says(t, "the first part", g.Trace(first), append([]string{"part 1 of 2"}, steps[2:]...)...)
	says(t, "the second part", g.Trace(second), append([]string{"part 2 of 2"}, steps[2:]...)...)

	same := acme.PostInbound(map[string]any{"id": "part1", "from": "447700900123", "to": "447800020001", "text": "p1", "udh": "050003770201"})
	discarded := acme.PostInboundText("h", "447800300001", "x")
	lost := acme.PostInboundText("l", "4490", "x")
	receipt := acme.With("Content-Type", "application/x-www-form-urlencoded").Post("/inbound/sms/twilio", "MessageSid=SM1&MessageStatus=sent")
	receipt.Mentions(t, 200, "Response")
	g.AwaitProcessed()
	says(t, "a repeated message", g.Trace(same), "duplicate", "the same as "+first, "0 deliveries")
	says(t, "a discarded message", g.Trace(discarded), "routed", "as the relays are now: geo relay g-hole: black_hole", "0 deliveries")
	says(t, "a message without a relay", g.Trace(lost), "unrouted : no relay of account 1 for 4490", "0 deliveries")
	says(t, "a receipt", g.Trace(g.Events("source=twilio")[0].ID), "read : a delivery receipt: SM1 is sent", "0 deliveries")
	g.Admin().Get("/admin/events/n1-s99").Is(t, 404, `{"message":"Not found."}`)
	g.Admin().Get("/admin/events/x").Is(t, 404, `{"message":"Not found."}`)
}

// TestAPartThatNeverComesIsWaitedForAsLongAsConfigured sets how long a part waits for the others.
func TestAPartThatNeverComesIsWaitedForAsLongAsConfigured(t *testing.T) {
	t.Parallel()
	g, k, _ := e2e.StartWithRelays(t, e2e.Embedded(), nil, "PENSTOCK_INBOUND_JOIN_WAIT=400ms")
	g.As("acme-all-0123456").PostInbound(map[string]any{"id": "p1", "from": "447700900123", "to": "447800019999", "text": "half", "udh": "050003770201"})
	h := k.Await(t, "/vmn", 1)
	e2e.SameValues(t, h.Query, map[string]string{"msg": "half[…]", "stat": "1"})
}

// TestTheTraceOfAFrame checks the steps of frames: the rules that applied, why they fired or not, and their deliveries.
func TestTheTraceOfAFrame(t *testing.T) {
	t.Parallel()
	k := e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	acme := g.As("acme-all-0123456")
	rule := func(body string) string { return acme.Create("/iot/rules", body) }
	post := func(url string) string {
		return `"actions":[{"action":"http_post","parameters":["` + k.URL + url + `"]}]`
	}
	warm := rule(`{"name":"Warm","on":"reading","when":"values.temperature > 30",` + post("/warm") + `}`)
	wet := rule(`{"name":"Wet","on":"reading","when":"values.humidity > 80",` + post("/wet") + `}`)
	forward := rule(`{"name":"Forward","on":"reading",` + post("/forward") + `}`)
	rule(`{"name":"Elsewhere","on":"reading","devices":{"name":"barn*"},` + post("/barn") + `}`)
	rule(`{"name":"Joins","on":"event",` + post("/joins") + `}`)
	event := func(celsius string) string {
		t.Helper()
		acme.Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":`+celsius+`}`).Mentions(t, 200, "temperature")
		g.AwaitProcessed()
		return g.Events("kind=uplink")[0].ID
	}
	hot, hotter := event("31"), event("32")
	relaytest.Eventually(t, "the deliveries of the rules are made", func() (any, bool) {
		found := g.Deliveries("kind=rule&state=delivered")
		return found, len(found) == 3
	})
	// Rules are listed by id. Those created within the same millisecond have any order.
	first := g.Trace(hot)
	says(t, "the frame that raised an alarm", first, "received", "recognised : as a post of generic with 1 frame", "read : uplink of device shed; readings: 1",
		"device : shed is the device ", `decoder : sent, "Decoded by the sender", codec json`, "reading : temperature = 31 °C", "stored : the store has 1 of 1 readings, at this time of the frame",
		"rule : rule "+warm+`: "Warm" raised the alarm `, "when holds", "routed : rule "+warm+": delivery ", "/warm", "attempt 1: answered 200", "is delivered", "2 deliveries")
	says(t, "the rule that lacks a value", first, "stored", "rule : rule "+wet+`: "Wet" did not fire: when: values.humidity is missing`)
	says(t, "the rule without a condition", first, "stored", "rule : rule "+forward+`: "Forward" forwards the frame: the rule has no when`, "/forward", "is delivered", "2 deliveries")
	second := g.Trace(hotter)
	says(t, "the next frame", second, "rule : rule "+warm+`: "Warm" did not fire: `, "the alarm was raised already", "1 deliveries")
	says(t, "the next frame, forwarded", second, "stored", "rule : rule "+forward, "1 deliveries")
	if strings.Contains(second, "Elsewhere") || strings.Contains(second, "Joins") {
		t.Errorf("the trace names rules that do not apply:\n%s", second)
	}
}
