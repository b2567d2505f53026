package app

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestConsoleEditsAndExplainsARelay drives the console as an operator does who sends a
// customer's messages to another endpoint, after a viewer has looked.
func TestConsoleEditsAndExplainsARelay(t *testing.T) {
	t.Parallel()
	b, k := newBrowser(t), newSink(t, nil)
	g := start(t, &site{name: "embedded"}, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", "ops@example.com"))
	g.addUser("vera", "viewer", "")
	g.addUser("oscar", "operator", "")

	b.do(chromedp.Navigate(g.url() + "/console#relays"))
	b.signInAs("vera")
	b.shows("g-get", "4478000", "paths are hidden from your role")
	b.press("g-hole")
	b.shows("Relay g-hole", "Declared by")
	if seen := b.text(); strings.Contains(seen, "Save") || strings.Contains(seen, "Explain") {
		t.Errorf("the viewer is offered to change it: %s", seen)
	}
	b.press("Sign out vera")

	b.signInAs("oscar")
	b.do(chromedp.Navigate(g.url() + "/console#relays"))
	b.write("input[name=q]", "hole"+kb.Enter)
	b.press("g-hole")
	b.shows("inventory document default", "black_hole", "Discard messages")
	b.do(chromedp.SetValue(chromedp.CSS("select[name=action]"), "http_get"))
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("select[name=action]").dispatchEvent(new Event("change"))`))
	b.shows("URLs, one a line")
	b.write("textarea[name=parameters]", "http://10.0.0.1/")
	b.press("Save")
	b.shows("parameters.0")
	b.do(chromedp.SetValue(chromedp.CSS("textarea[name=parameters]"), k.url+"/mended?m=%m"))
	b.write("input[name=filter]", `text startsWith "A"`)
	b.press("Save")
	b.shows("Saved. The next message follows it")
	b.do(chromedp.SetValue(chromedp.CSS("input[name=to]"), "447800312345"))
	b.do(chromedp.SetValue(chromedp.CSS("input[name=text]"), "Alarm in hall 3"))
	b.press("Explain this message")
	b.shows("Taken by the geo relay g-hole of account acme (1): it has the prefix 4478003, and the message meets its filter.", "GET request", "/mended?m=Alarm%20in%20hall%203")
	b.do(chromedp.SetValue(chromedp.CSS("input[name=text]"), "Nothing"))
	b.press("Explain this message")
	b.shows("Nobody takes it", "does not hold")

	g.as("acme-all-0123456").post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"447800312345","text":"Alarm"}`).mentions(t, 200, "id")
	if got := k.await(t, "/mended", 1); got.query.Get("m") != "Alarm" {
		t.Errorf("the endpoint got %q", got.query.Get("m"))
	}
	g.admin().get("/admin/audit?operation=changeRelay&outcome=done").mentions(t, 200, `"actor":"oscar"`)
	g.admin().get("/admin/audit?operation=changeRelay&outcome=done").mentions(t, 200, `"target":"geo relay g-hole"`)
	b.quiet("status of 422")
}
