package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func checkOrder(t *testing.T, label, text string, parts ...string) {
	t.Helper()
	remaining := text
	for _, p := range parts {
		_, suffix, ok := strings.Cut(remaining, p)
		if !ok {
			t.Errorf("%s: %q is missing or in the wrong place:\n%s", label, p, text)
			return
		}
		remaining = suffix
	}
}

// TestTraceOfAMessage checks the steps of messages: received, joined, routed, attempted.
func TestTraceOfAMessage(t *testing.T) {
	t.Parallel()
	g, sink, _ := e2e.StartWithRelays(t, e2e.Embedded(), func(w http.ResponseWriter, _ e2e.SinkRequest, earlier int) {
		if earlier == 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}, "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	acme := g.WithToken("acme-all-0123456")
	part := func(n int) string {
		return acme.PostInbound(map[string]any{"id": fmt.Sprint("part", n), "from": "447700900123", "to": "447800020001", "text": fmt.Sprint("p", n), "udh": fmt.Sprintf("05000377020%d", n)})
	}
	secondID := part(2)
	g.AwaitProcessed()
	checkOrder(t, "a part that waits", g.Trace(secondID), "received : Received from source json for account acme and written to the journal.", "read : The message is from 447700900123 to 447800020001, encoding GSM 7-bit.",
		"joined : This is part 2 of 2 of a message. It waits for the other parts", "0 deliveries")
	firstID := part(1)
	sink.Await(t, "/vmn-post", 2)
	g.AwaitDelivery("v-post", "delivered")
	steps := []string{"received", "joined", "of the message " + firstID, "routed", "The relay v-post creates a delivery to http://", "attempt", "Attempt 1 to deliver to http://", "answered 502.", "Attempt 2 to deliver", "answered 200.", "succeeded.", "1 deliveries"}
	checkOrder(t, "the first part", g.Trace(firstID), append([]string{"part 1 of 2"}, steps[2:]...)...)
	checkOrder(t, "the second part", g.Trace(secondID), append([]string{"part 2 of 2"}, steps[2:]...)...)

	repeatedID := acme.PostInbound(map[string]any{"id": "part1", "from": "447700900123", "to": "447800020001", "text": "p1", "udh": "050003770201"})
	discardedID := acme.PostInboundText("h", "447800300001", "x")
	unroutedID := acme.PostInboundText("l", "4490", "x")
	receipt := acme.With("Content-Type", "application/x-www-form-urlencoded").Post("/inbound/sms/twilio", "MessageSid=SM1&MessageStatus=sent")
	receipt.Mentions(t, 200, "Response")
	g.AwaitProcessed()
	checkOrder(t, "a repeated message", g.Trace(repeatedID), "duplicate", "It was received before as "+firstID, "0 deliveries")
	checkOrder(t, "a discarded message", g.Trace(discardedID), "routed", "With the current relays: the geographic relay g-hole discards the message.", "0 deliveries")
	checkOrder(t, "a message without a relay", g.Trace(unroutedID), "unrouted : No relay takes the message: the account has no relay for 4490. Add or change a relay, then replay the event.", "0 deliveries")
	checkOrder(t, "a receipt", g.Trace(g.Events("source=twilio")[0].ID), "read : The request is a delivery receipt: SM1 is sent.", "0 deliveries")
	g.Admin().Get("/admin/events/n1-s99").Expect(t, 404, `{"message":"Not found."}`)
	g.Admin().Get("/admin/events/x").Expect(t, 404, `{"message":"Not found."}`)
}

// TestIncompleteMessageIsDeliveredAfterTheJoinWait sets the time for which a part waits for other parts.
func TestIncompleteMessageIsDeliveredAfterTheJoinWait(t *testing.T) {
	t.Parallel()
	g, sink, _ := e2e.StartWithRelays(t, e2e.Embedded(), nil, "PENSTOCK_INBOUND_JOIN_WAIT=400ms")
	g.WithToken("acme-all-0123456").PostInbound(map[string]any{"id": "p1", "from": "447700900123", "to": "447800019999", "text": "half", "udh": "050003770201"})
	req := sink.Await(t, "/vmn", 1)
	e2e.SameValues(t, req.Query, map[string]string{"msg": "half[…]", "stat": "1"})
}

// TestTraceOfAFrame checks the steps of frames: the rules that apply, the reasons for their results, and
// their deliveries.
func TestTraceOfAFrame(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	rule := func(body string) { acme.Create("/iot/rules", body) }
	post := func(url string) string {
		return `"actions":[{"action":"http_post","parameters":["` + sink.URL + url + `"]}]`
	}
	rule(`{"name":"Warm","on":"reading","when":"values.temperature > 30",` + post("/warm") + `}`)
	rule(`{"name":"Wet","on":"reading","when":"values.humidity > 80",` + post("/wet") + `}`)
	rule(`{"name":"Forward","on":"reading",` + post("/forward") + `}`)
	rule(`{"name":"Elsewhere","on":"reading","devices":{"name":"barn*"},` + post("/barn") + `}`)
	rule(`{"name":"Joins","on":"event",` + post("/joins") + `}`)
	postEvent := func(celsius string) string {
		t.Helper()
		acme.Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":`+celsius+`}`).Mentions(t, 200, "temperature")
		g.AwaitProcessed()
		return g.Events("kind=uplink")[0].ID
	}
	hotID, hotterID := postEvent("31"), postEvent("32")
	relaytest.Eventually(t, "the deliveries of the rules are made", func() (any, bool) {
		found := g.Deliveries("kind=rule&state=delivered")
		return found, len(found) == 3
	})
	// Rules are listed by id. Rules that were created within a millisecond have any order.
	firstTrace := g.Trace(hotID)
	checkOrder(t, "the frame that raised an alarm", firstTrace, "received", "recognised : The sender is generic; the request has 1 frame.", "read : Frame from shed: uplink.",
		`decoder : The decoder "Decoded by the sender" decodes the frame.`, "reading : Temperature 31 °C.", "stored : Readings stored with the frame's time.",
		`rule : The rule "Warm" raised an alarm: the condition is met.`, `routed : The rule "Warm" creates a delivery to `, "/warm", "answered 200.", "succeeded.", "2 deliveries")
	checkOrder(t, "the rule that lacks a value", firstTrace, "stored", `rule : The rule "Wet" raised no alarm: the condition cannot be evaluated, because values.humidity is missing.`)
	checkOrder(t, "the rule without a condition", firstTrace, "stored", `rule : The rule "Forward" forwarded the frame: the rule has no condition.`, "/forward", "succeeded", "2 deliveries")
	secondTrace := g.Trace(hotterID)
	checkOrder(t, "the next frame", secondTrace, `rule : The rule "Warm" raised no alarm: the condition is met, but an alarm was already raised.`, "1 deliveries")
	checkOrder(t, "the next frame, forwarded", secondTrace, "stored", `rule : The rule "Forward"`, "1 deliveries")
	if strings.Contains(secondTrace, "Elsewhere") || strings.Contains(secondTrace, "Joins") {
		t.Errorf("trace = %s\nwant no rules that do not apply", secondTrace)
	}
}
