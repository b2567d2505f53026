package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// openReplay opens the dialog for replays, and limits the replay by one field.
func openReplay(b *e2e.Browser, field, value string) {
	b.T.Helper()
	b.Press("Replay…")
	b.AwaitCondition("relays are offered", `(document.querySelector("dialog select[name=relay]")?.options.length ?? 0) > 1`)
	b.Set("dialog [name="+field+"]", value)
	b.Press("Continue")
}

// TestConsoleReplaysByRelayAndByReason replays the messages that a new relay takes, and the messages that
// failed for one reason. The other messages do not change.
func TestConsoleReplaysByRelayAndByReason(t *testing.T) {
	t.Parallel()
	b, sink := e2e.NewBrowser(t), e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "ops@example.com"))
	acme := g.WithToken("acme-all-0123456")
	for i, number := range []string{"449100000001", "449100000002", "449200000001"} {
		acme.Post("/inbound/sms/json", fmt.Sprintf(`{"id":"m%d","from":"447700900123","to":"%s","text":"to %[2]s"}`, i, number)).Mentions(t, 200, "id")
	}
	g.AwaitProcessed()
	unroutedReasons := func() (reasons []string) {
		for _, e := range g.Events("kind=sms&state=unrouted") {
			reasons = append(reasons, e.Reason)
		}
		return reasons
	}
	relaytest.Equal(t, "the number of messages without a relay", len(unroutedReasons()), 3)
	var created struct{ Data struct{ ID any } }
	acme.Post("/v2/sms-relay/geo", fmt.Sprintf(`{"prefix":"4491","action":"http_get","parameters":["%s/new?d=%%d"]}`, sink.URL)).Decode(t, &created)

	b.Open(g.URL() + "/console#events")
	b.SignIn()
	b.AwaitText("the account has no relay for 449200000001")
	openReplay(b, "relay", fmt.Sprint(created.Data.ID))
	b.AwaitText("Replay 2 events?")
	b.Press("Replay 2")
	b.AwaitText("2 events are processed again.", "2 deliveries created.")
	numbers := make(map[string]bool)
	relaytest.Eventually(t, "the new relay has both messages", func() (any, bool) {
		for _, request := range sink.Requests("/new") {
			numbers[request.Query.Get("d")] = true
		}
		return numbers, len(numbers) == 2
	})
	relaytest.Equal(t, "the reasons of messages without a relay", strings.Join(unroutedReasons(), ", "), "the account has no relay for 449200000001")

	openReplay(b, "reason", "for 4491")
	b.AwaitText("No event matches.")
	openReplay(b, "reason", "for 4492")
	b.AwaitText("Replay 1 event?")
	b.Press("Replay 1")
	b.AwaitText("1 event is processed again.")
	relaytest.Equal(t, "the number of requests of the new relay", len(sink.Requests("/new")), 2)
	b.ExpectNoProblems()
}

// TestConsoleResendsALostPart sends a message of two parts: one part is not delivered, and the carrier's
// answer to the other part is lost. Only the lost part is sent again, without a charge.
func TestConsoleResendsALostPart(t *testing.T) {
	t.Parallel()
	const number = "447700900116"
	peer := e2e.StartSMSC(t)
	g := e2e.NewGateway(t, e2e.Embedded(), "accounts: [{name: acme, credit: 100, tokens: [{token: acme-token-0123456, scopes: [messaging]}]}]")
	g.Configure("carriers:\n" + peer.CarrierConfig("one", "answer_timeout: 1s"))
	g.Run()
	acme := g.XAuth("acme-token-0123456")
	acme.Post("/v2/sms/send", fmt.Sprintf(`{"destinations":["%s"],"message":"%s"}`, number, strings.Repeat("0123456789", 20))).Mentions(t, 200, "id")

	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console#messages")
	b.SignIn()
	b.AwaitText("Unknown 1 of 2", "Undelivered 1 of 2")
	applyFilter(b, "state", "unknown")
	b.AwaitCondition("the message is found by its lost part", `document.querySelectorAll(".listing tbody tr:not(.detail)").length === 1`)
	b.Click("button.open")
	b.AwaitText("Not delivered: ", "Send again as a new message", "Nothing is charged. The phone may receive them twice.")
	b.Press("Retry the lost parts")
	b.AwaitText("Retry 1 part of 1 message?")
	b.Press("Cancel")
	b.Click("button.open")
	b.Click("td.selects input")
	b.Press("Retry lost parts (1)")
	b.AwaitText("Retry 1 part of 1 message?", "The carrier's answer was lost")
	b.Press("Retry 1")
	b.AwaitText("1 part is retried.", "No messages match the filters.")
	b.Press("Clear")
	b.AwaitText("Delivered 1 of 2", "Undelivered 1 of 2")
	submissions := 0
	for _, e := range peer.Events() {
		if e.Destination == number {
			submissions++
		}
	}
	relaytest.Equal(t, "the number of submissions to the carrier", submissions, 3)
	acme.Get("/v2/sms/credit").Expect(t, 200, `{"data":{"credit":98}}`)
	b.ExpectNoProblems()
}
