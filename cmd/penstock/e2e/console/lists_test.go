package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestListsShowWhatIsStillToBeDone checks the states of a message whose delivery is retried, the time of
// the next attempt, the filters by state and order, the selection of all rows, the titles of repeated frames, and
// the order of the SIMs that Overview leads to.
func TestListsShowWhatIsStillToBeDone(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for n, number := range []string{"447800012345", "4478001000", "4490", "4491", "4492"} { // retried, delivered, unrouted
		acme.Post("/inbound/sms/json", fmt.Sprintf(`{"id":"m%d","from":"447700900123","to":"%s","text":"Message %d"}`, n, number, n)).Mentions(t, 200, "id")
	}
	for range 2 {
		acme.Post("/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json")).Expect(t, 200, "")
		g.AwaitProcessed()
	}
	g.AwaitDelivery("g1", "retrying")
	g.AwaitDelivery("g2", "simulated")
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console#messages")
	b.SignIn()
	b.AwaitText("Processed", "Delivery retrying", "Delivery simulated", "next attempt ", "Unrouted")
	applyFilter(b, "state", "done")
	b.AwaitCondition("only processed messages are listed", `document.querySelectorAll(".listing button.open").length === 2 && !document.querySelector(".listing").innerText.includes("Unrouted")`)
	applyFilter(b, "state", "unrouted")
	b.AwaitCondition("only unrouted messages are listed", `document.querySelectorAll(".listing button.open").length === 3 && !document.querySelector(".listing").innerText.includes("Processed")`)
	b.Press("Deliveries")
	b.AwaitText("Retrying", "next attempt ", "Select all that have ended (1)", "Not sent: email is simulated.", "Relay 4478000*, to 447800012345")
	b.Press("Events")
	b.AwaitText("Processed", "447700900123 → 4490", "to relay 4478000*: Retrying", "to relay 4478001*: Simulated", "Add relay Replay", "Select all on this page (7)", "dropped; fCnt 4711, fPort 2")
	b.Click("#all")
	b.AwaitText("Replay selected (7)")
	b.Press("Devices")
	b.AwaitCondition("the order has no option without a meaning", `document.querySelector("select[name=order]")?.innerText === "Longest silent first\nBy account"`)
	b.Press("Overview")
	b.Click(`a.tile[href^="#sims"]`)
	b.AwaitCondition("the SIM with the highest usage is the first", `document.querySelector("th[aria-sort=descending]")?.innerText === "Usage"`)
	b.ExpectNoProblems()
}

// TestPagesBelowAListLeadBackToIt follows the link of each page that a list leads to.
func TestPagesBelowAListLeadBackToIt(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.AwaitText("Back ends ready")
	for page, list := range map[string]string{"start": "Accounts", "trace": "Events", "try": "Decoders", "tryrule": "Rules", "explain": "Relays"} {
		b.Open(g.URL() + "/console#" + page)
		b.Press("← " + list)
		b.AwaitCondition(page+" leads to "+list, fmt.Sprintf(`document.querySelector("h1")?.innerText === %q`, list))
	}
	b.ExpectNoProblems()
}

// TestCardsOfAPhoneNameTheirValues checks that each value of a row has the name of its column, except the time and
// the state in the first line, and the result of an event.
func TestCardsOfAPhoneNameTheirValues(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.WithToken("acme-all-0123456").Post("/inbound/sms/json", `{"id":"m","from":"447700900123","to":"4490","text":"Hello"}`).Mentions(t, 200, "id")
	g.AwaitProcessed()
	b := e2e.NewBrowser(t)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.Open(g.URL() + "/console#messages")
	b.SignIn()
	for _, page := range []string{"messages", "events", "relays", "sims", "decoders", "accounts", "ledgers"} {
		b.Open(g.URL() + "/console#" + page)
		b.AwaitCondition("the values of "+page+" have names", `(() => {
			const cells = [...document.querySelectorAll("tbody tr:not(.detail) td:not(.selects)")].filter((td) => td.offsetParent && td.innerText && !td.querySelector("button"));
			const unnamed = cells.filter((td) => getComputedStyle(td, "::before").content === "none");
			return cells.length > 2 && unnamed.every((td) => td === td.parentElement.querySelector("td:not(.selects)") || td.matches(".first, .pill, .unlabelled"));
		})()`)
	}
	b.ExpectNoProblems()
}
