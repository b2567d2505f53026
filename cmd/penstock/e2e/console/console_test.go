// Package console tests the console in Chromium end to end.
package console

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// applyFilter applies a filter to a list.
func applyFilter(b *e2e.Browser, filter, word string) {
	b.T.Helper()
	b.Set("select[name="+filter+"]", word)
	b.Press("Apply")
}

// markup is a text that changes the page if the console renders it as markup. The endpoint returns it in
// its answers.
const markup = `<img src=x onerror=document.title='harm'><b>Gate</b>`

// TestConsoleShowsExplainsAndReplays checks the views for deliveries, events, relays, rules and accounts.
func TestConsoleShowsExplainsAndReplays(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	var corrected atomic.Bool
	sink := e2e.NewSink(t, func(w http.ResponseWriter, req e2e.SinkRequest, _ int) {
		if strings.HasPrefix(req.Path, "/get/") && !corrected.Load() {
			http.Error(w, "no: "+req.Query.Get("m"), http.StatusNotFound)
		}
	})
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "ops@example.com", "name: acme", "name: acme\n    credit: 10"))
	for _, m := range [][2]string{{"447800055501", markup}, {"447800020001", "This one arrives"}, {"4490", "Nobody takes " + markup}} {
		g.WithToken("acme-all-0123456").Post("/inbound/sms/json", fmt.Sprintf(`{"id":"to-%s","from":"447700900123","to":"%s","text":"%s"}`, m[0], m[0], m[1])).Mentions(t, 200, "id")
	}
	deadID := g.AwaitDelivery("g-get", "dead").ID
	g.AwaitDelivery("v-post", "delivered")
	g.AwaitProcessed()

	b.Open(g.URL() + "/console")
	checkSignIn(b)
	checkDeadDelivery(b, deadID)
	corrected.Store(true)
	checkRetry(b, sink, deadID)
	checkEvents(b)
	checkExplainAndTry(b, g)
	checkRulesAndAlarms(b, g)
	checkAccounts(b, g)
	if !b.EvaluateCondition(`document.title !== "harm" && document.images.length === 0`) {
		t.Error("the console rendered the message as markup")
	}
	b.ExpectNoProblems("status of 401", "status of 422")
}

// checkSignIn signs in with a wrong token, which is refused, and with the admin token.
func checkSignIn(b *e2e.Browser) {
	b.Write("#token", "wrong"+kb.Enter)
	b.AwaitText("Admin token refused.")
	b.SignIn()
	b.AwaitText("Back ends ready", "Simulated: Carrier simulator, Number lookups, Outgoing email, SIM operator.", "failed delivery", "No paused endpoints.")
	b.Press("System")
	b.AwaitText("Journals", "sink", "Delivery queue", "Delivered or simulated", "Failed attempts")
	b.AwaitCondition("the token is stored in the tab only", `sessionStorage.length === 1 && localStorage.length === 0 && document.cookie === ""`)
}

// checkDeadDelivery opens the dead delivery, also after a reload of the page, and the timeline of its
// message.
func checkDeadDelivery(b *e2e.Browser, id string) {
	b.Press("Deliveries")
	applyFilter(b, "state", "dead")
	b.AwaitCondition("only failed deliveries are listed", `/4478000\*[^]*Failed/.test(document.querySelector(".listing")?.innerText) && !/447800020001|Dead/.test(document.body.innerText)`)
	b.Click("#open-" + id)
	b.AwaitText("Attempts", "404", "answered 404 Not Found", "no: "+markup)
	b.Do(chromedp.Reload())
	b.AwaitText("Attempts", "no: "+markup)
	b.Press("Timeline of the message")
	b.AwaitText("Timeline", "Received", "Routed", "Attempt 1 to deliver to ", `"text":"`+markup)
	b.Do(chromedp.NavigateBack())
	b.AwaitText("Retry this delivery")
}

// checkRetry retries the dead delivery after the endpoint was repaired. Before a retry of delivered
// deliveries, the console asks for a confirmation.
func checkRetry(b *e2e.Browser, sink *e2e.Sink, id string) {
	b.Press("Retry all failed that match")
	b.AwaitText("Retry 1 delivery?", "Every failed delivery that matches the filters")
	b.Press("Cancel")
	b.Press("Retry this delivery")
	b.AwaitText("Retry 1 delivery?")
	b.Press("Cancel")
	b.Press("Retry this delivery")
	b.AwaitText("Retry 1 delivery?")
	b.Press("Retry 1")
	b.AwaitText("1 delivery is queued again.", "No deliveries match the filters.")
	if request := sink.Await(b.T, "/get/447700900123/in", 2); request.Query.Get("m") != markup {
		b.T.Errorf("message at the endpoint = %q, want %q", request.Query.Get("m"), markup)
	}
	b.Press("Clear")
	row := fmt.Sprintf(`document.getElementById("open-%s")?.closest("tr").innerText.includes("Delivered") ?? false`, id)
	relaytest.Eventually(b.T, "the delivery is shown as delivered", func() (any, bool) { b.Press("Refresh"); return b.Text(), b.EvaluateCondition(row) })
	b.Click("#all")
	b.Press("Retry selected (2)")
	b.AwaitText("Retry 2 deliveries?", "2 of them have arrived already")
	b.Press("Cancel")
	if n := len(sink.Requests("/get/447700900123/in")); n != 2 {
		b.T.Errorf("requests at the endpoint = %d, want 2", n)
	}
}

// checkEvents filters the events, opens the unrouted event and replays it.
func checkEvents(b *e2e.Browser) {
	b.Press("Events")
	b.AwaitText("Select all on this page")
	b.Press("More filters")
	b.Write("input[name=device]", strings.Repeat("x", 5)+kb.Enter)
	b.AwaitText("No events match the filters.")
	b.Press("Clear")
	applyFilter(b, "state", "unrouted")
	b.AwaitText("the account has no relay for 4490", "Replay all that match")
	b.Click("button.open")
	b.AwaitText("Nobody takes " + markup)
	b.Click("#all")
	b.Press("Replay selected (1)")
	b.AwaitText("Replay 1 event?")
	b.Press("Cancel")
	b.Press("Replay all that match")
	b.AwaitText("Replay 1 event?")
	b.Press("Replay 1")
	b.AwaitText("1 event is processed again.")
}

// checkExplainAndTry explains the relay of a number, and decodes a payload.
func checkExplainAndTry(b *e2e.Browser, g *e2e.Gateway) {
	b.Open(g.URL() + "/console#explain")
	b.Write("input[name=to]", "447800055501"+kb.Enter)
	b.AwaitText("The prefix relay 4478000* of the account acme takes the message: its prefix 4478000 matches.", "HTTP request", "/get/447700900123/in?m=Test")
	b.Do(chromedp.Reload())
	b.AwaitText("The prefix relay 4478000* of the account acme takes the message")
	b.Open(g.URL() + "/console#try")
	b.Set("select[name=codec]", "cayenne_lpp")
	b.Write("textarea[name=payload]", "01 67 01 10")
	b.Click("#go")
	b.AwaitText("temperature_1", "27.2", "No readings: none of these keys is mapped.")
}

// createWarmAlarm creates a rule and posts a reading that raises an alarm of the rule. The name of the
// rule is markup, because accounts choose the names.
func createWarmAlarm(g *e2e.Gateway) {
	g.T.Helper()
	g.Admin().Put("/admin/inventory", `{"sensor_types":[{"id":"temperature","name":"Temperature","metric_units":"°C"}],"accounts":[{"name":"acme",
		"locations":[{"id":"arrivals","name":"Arrivals","imported":true}],
		"decoders":[{"id":"sent","name":"Sent","type":"other","sensors":[{"sensor_type_id":"temperature","key":"temperature"}]}],
		"rules":[{"id":"warm","name":"`+strings.ReplaceAll(markup, `"`, `'`)+`","on":"reading","when":"values.temperature > 30",
			"actions":[{"action":"email","parameters":["ops@example.com"]}]}]}]}`).Mentions(g.T, 200, "acme")
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":31}`).Mentions(g.T, 200, "31")
	g.AwaitProcessed()
}

// checkRulesAndAlarms opens the alarm of a rule, acknowledges the alarm with a note, and tries the rule.
func checkRulesAndAlarms(b *e2e.Browser, g *e2e.Gateway) {
	createWarmAlarm(g)
	b.Press("Rules")
	b.AwaitText("Temperature is above 30", "Enabled", "<b>Gate</b>", "acme")
	b.Click("tbody a")
	b.AwaitText("Email addresses, one per line", "Delete rule")
	b.Click(`nav[aria-label="Of this rule"] a`)
	b.AwaitText("Raised", "shed", "Temperature 31 °C")
	b.Click("button.open")
	b.AwaitText("Readings that raised it", "31 °C")
	b.Write("input[name=note]", "The window is open")
	b.Click("tr.detail button.main")
	b.AwaitText("1 alarm is acknowledged.", "The window is open", "Acknowledge again")
	var list struct {
		Data []struct {
			Note string
			By   string `json:"acknowledged_by"`
		}
	}
	g.WithToken("acme-all-0123456").Get("/iot/alarms").Decode(b.T, &list)
	if len(list.Data) != 1 || list.Data[0].Note != "The window is open" || list.Data[0].By != "operator" {
		b.T.Errorf("alarms over REST = %+v, want one with the note, acknowledged by operator", list.Data)
	}
	b.Press("Test a rule")
	b.AwaitText("Effect", "Raised", "Met", "Email to ops@example.com")
	b.Set("textarea[name=rule]", "{")
	b.Click("#go")
	b.AwaitText("The rule must be a JSON object")
}

// checkAccounts opens the messages, the credit and the relays of an account and the inventory, and signs
// out.
func checkAccounts(b *e2e.Browser, g *e2e.Gateway) {
	e2e.CustomerOf(g).Post("/v2/sms/send", `{"destinations":["447700909001"],"message":"Hello"}`).Mentions(b.T, 200, "id")
	b.Press("Messages")
	b.AwaitText("447700909001", "Hello")
	b.Write("input[name=number]", "447700909001"+kb.Enter)
	b.AwaitCondition("only messages of the number are listed", `document.querySelectorAll(".listing tbody tr:not(.detail)").length === 1`)
	b.Click("button.open")
	b.AwaitText("Not delivered: ", "Part 1 of 1", "GSM alphabet (7 bits)", "Received via", "acme")
	b.Press("Accounts")
	b.AwaitText("acme", "globex", "9")
	b.Press("acme")
	b.Press("Credit")
	b.AwaitText("9 credits", "Charge for a message", "First credit, from the inventory")
	b.Press("Relays")
	b.AwaitText("4478000", "g-get", "/get/%o/in?m=%m")
	b.Press("Inventory")
	b.AwaitText("acme", "globex", "1 relay")
	b.Click("details:first-of-type summary")
	b.Press("Everything else, as declared")
	b.AwaitText("g-get", "masked:")
	b.Press("Sign out (admin token)")
	b.AwaitText("Admin token")
	b.AwaitCondition("the token is deleted after the sign-out", `sessionStorage.length === 0`)
}
