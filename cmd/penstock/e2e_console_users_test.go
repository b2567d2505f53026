package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// signInAs signs a user in on the page.
func (b *browser) signInAs(name string) {
	b.t.Helper()
	b.shows("Sign in with the token")
	b.write("#name", name)
	b.write("#password", userPassword+kb.Enter)
	b.shows("Sign out " + name)
}

// TestConsoleKnowsUsers signs in as an admin, a viewer and an operator.
func TestConsoleKnowsUsers(t *testing.T) {
	b := newBrowser(t)
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	g.addUser("root", "admin", "")
	g.addUser("oscar", "operator", "")
	g.as("acme-all-0123456").post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"4490","text":"Meet me at noon"}`).mentions(t, 200, "id")
	g.settled()

	b.do(chromedp.Navigate(g.url() + "/console"))
	b.shows("Sign in with the token")
	b.write("#name", "root")
	b.write("#password", "not the password"+kb.Enter)
	b.shows("The name or the password is wrong.")
	b.do(chromedp.Reload())
	b.signInAs("root")
	if !b.holds(`sessionStorage.length === 0 && Object.values(localStorage).join() === "1" && document.cookie === ""`) {
		t.Error("scripts can read the session")
	}
	b.do(chromedp.Reload())
	b.shows("Sign out root") // the cookie goes on
	b.press("Users")
	b.shows("oscar", "operator", "never")
	b.press("Add a user")
	b.write("input[name=name]", "vera")
	b.write("input[name=password]", userPassword+kb.Enter)
	b.shows("vera may sign in as viewer.")
	b.press("Audit log")
	b.shows("addUser", "vera", "admin token", "root", "signIn")
	b.press("Sign out root")

	b.signInAs("vera")
	b.press("Events")
	b.shows("unrouted")
	b.click("button.open")
	if strings.Contains(b.text(), "Meet me at noon") {
		t.Error("the viewer reads the text")
	}
	b.click("#all")
	b.press("Replay selected (1)")
	b.press("Replay 1")
	b.shows("The role viewer may not do this; it takes operator or admin.")
	b.do(chromedp.Reload())
	b.press("Users")
	b.shows("The role viewer may not do this; it takes admin.")
	b.press("Sign out vera")

	b.signInAs("oscar")
	b.press("Events")
	b.shows("unrouted")
	b.click("button.open")
	b.shows("Meet me at noon")
	if wrong := b.complaints("status of 401", "status of 403"); len(wrong) > 0 {
		t.Errorf("the browser complains: %q", wrong)
	}
}
