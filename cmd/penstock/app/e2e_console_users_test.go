package app

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

const changedPassword = "a correct battery, stapled"

// sharesOneAccount signs a user of one account in, who sees no other one.
func (b *browser) sharesOneAccount(g *gateway) {
	g.addUser("carla", "account", `"acme"`)
	g.as("acme-all-0123456").post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).mentions(b.t, 200, "21")
	g.settled()
	b.signInAs("carla")
	b.do(chromedp.Navigate(g.url() + "/console#devices"))
	b.shows("shed", "acme (1)")
	if seen := b.text(); strings.Contains(seen, "Account (name or id)") || strings.Contains(seen, "Overview") || strings.Contains(seen, "globex") {
		b.t.Errorf("the account's user is offered more than its account: %s", seen)
	}
	b.click("tbody a")
	b.shows("21 °C", "No alarm was raised for this device.")
	for _, view := range [][2]string{{"SIMs", activeSIM}, {"Messages", "No message matches."}, {"Rules", "No rule matches."}, {"Credit", "What changed"}, {"Ledgers", "l1"}, {"Decoders", "acme (1)"}} {
		b.press(view[0])
		b.shows(view[1])
	}
}

// TestConsoleKnowsUsers signs in as an admin, a viewer and an operator.
func TestConsoleKnowsUsers(t *testing.T) {
	t.Parallel()
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
	if seen := b.text(); strings.Contains(seen, "Replay") || strings.Contains(seen, "Users") || strings.Contains(seen, "Inventory") {
		t.Errorf("the viewer is offered what it may not do: %s", seen)
	}
	b.do(chromedp.Navigate(g.url() + "/console#users"))
	b.shows("The role viewer may not do this; it takes admin.")
	b.press("Password")
	b.write("input[name=password]", userPassword)
	b.write("input[name=new_password]", changedPassword)
	b.write("input[name=again]", "another one entirely"+kb.Enter)
	b.shows("The two new passwords differ.")
	b.do(chromedp.SetValue(chromedp.CSS("input[name=again]"), changedPassword))
	b.press("Change the password")
	b.shows("The password is changed. Sign in with the new one.")
	b.write("#name", "vera")
	b.write("#password", changedPassword+kb.Enter)
	b.press("Sign out vera")

	b.signInAs("oscar")
	b.press("Events")
	b.shows("unrouted")
	b.click("button.open")
	b.shows("Meet me at noon", "Replay this event")
	b.press("Sign out oscar")
	b.sharesOneAccount(g)
	if wrong := b.complaints("status of 401", "status of 403"); len(wrong) > 0 {
		t.Errorf("the browser complains: %q", wrong)
	}
}
