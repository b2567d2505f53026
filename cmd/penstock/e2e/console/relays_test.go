package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestConsoleEditsAndExplainsARelay opens a relay as a viewer, and changes the endpoint of the relay as an
// operator.
func TestConsoleEditsAndExplainsARelay(t *testing.T) {
	t.Parallel()
	b, sink := e2e.NewBrowser(t), e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "ops@example.com"))
	g.AddUser("vera", "viewer", "")
	g.AddUser("oscar", "operator", "")

	b.Open(g.URL() + "/console#relays")
	signInAs(b, "vera")
	b.AwaitText("g-get", "4478000", "paths are hidden from your role")
	b.Click(`a[href*="id=g-hole"]`)
	b.AwaitText("Relay 4478003*", "g-hole", "Declared by")
	if text := b.Text(); strings.Contains(text, "Save") || strings.Contains(text, "Preview") {
		t.Errorf("page for a viewer = %s, want no buttons for changes", text)
	}
	b.Press("Sign out vera")

	signInAs(b, "oscar")
	b.Open(g.URL() + "/console#relays")
	b.Write("input[name=q]", "hole"+kb.Enter)
	b.Click(`a[href*="id=g-hole"]`)
	b.AwaitText("Inventory document default", "Discard messages")
	b.Set("select[name=action]", "http_get")
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("select[name=action]").dispatchEvent(new Event("change"))`))
	b.AwaitText("URLs, one per line")
	b.Write("textarea[name=parameters]", "http://10.0.0.1/")
	b.Press("Save")
	b.AwaitText("Not saved. See the marked fields.")
	b.AwaitCondition("the refusal is next to the parameters", `document.activeElement.name === "parameters" && document.activeElement.getAttribute("aria-invalid") === "true" && document.querySelector(".problem").textContent !== ""`)
	b.Set("textarea[name=parameters]", sink.URL+"/corrected?m=%m")
	b.Write("input[name=filter]", `text startsWith "A"`)
	b.Press("Save")
	b.AwaitText("Saved. The next message follows it")
	b.Set("input[name=to]", "447800312345")
	b.Set("input[name=text]", "Alarm in hall 3")
	b.Press("Preview")
	b.AwaitText("The prefix relay 4478003* of the account acme takes the message: its prefix 4478003 matches, and the message meets its condition.", "HTTP request", "/corrected?m=Alarm%20in%20hall%203")
	b.Set("input[name=text]", "Nothing")
	b.Press("Preview")
	b.AwaitText("No relay takes the message", "is not met")

	g.WithToken("acme-all-0123456").Post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"447800312345","text":"Alarm"}`).Mentions(t, 200, "id")
	if request := sink.Await(t, "/corrected", 1); request.Query.Get("m") != "Alarm" {
		t.Errorf("message at the endpoint = %q, want Alarm", request.Query.Get("m"))
	}
	g.Admin().Get("/admin/audit?operation=patchGeographicRelay&outcome=done").Mentions(t, 200, `"actor":"oscar"`)
	g.Admin().Get("/admin/audit?operation=patchGeographicRelay&outcome=done").Mentions(t, 200, `"target":"g-hole"`)
	b.ExpectNoProblems("status of 422")
}
