package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// signInAs signs in as a user.
func signInAs(b *e2e.Browser, name string) {
	b.T.Helper()
	b.AwaitText("Sign in with the token")
	b.Write("#name", name)
	b.Write("#password", e2e.UserPassword+kb.Enter)
	b.AwaitText("Sign out " + name)
}

const changedPassword = "a correct battery, stapled"

// checkUserOfAnAccount signs in as a user of one account, who must not see other accounts.
func checkUserOfAnAccount(b *e2e.Browser, g *e2e.Gateway) {
	g.AddUser("carla", "account", `"acme"`)
	g.WithToken("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(b.T, 200, "21")
	g.AwaitProcessed()
	signInAs(b, "carla")
	b.Open(g.URL() + "/console#devices")
	b.AwaitText("shed")
	if text := b.Text(); strings.Contains(text, "Overview") || strings.Contains(text, "globex") {
		b.T.Errorf("page for a user of one account = %s, want only data of the account", text)
	}
	b.Click("tbody a")
	b.AwaitText("21 °C", "minimum to maximum")
	for _, view := range [][2]string{{"SIMs", e2e.ActiveSIM}, {"Messages", "4490"}, {"Rules", "No rules yet."}, {"Accounts", "History"}, {"Ledgers", "l1"}, {"Decoders", "Field tester"}} {
		b.Press(view[0])
		b.AwaitText(view[1])
	}
}

// TestAdminsChangeUsers gives a user another role and a new password.
func TestAdminsChangeUsers(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), "accounts: [{name: acme}, {name: globex}]")
	g.AddUser("oscar", "operator", "")
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.Press("Users")
	b.Click(`button[aria-label="Change oscar"]`)
	b.AwaitCondition("accounts are offered", `(document.querySelector("dialog select[name=account]")?.options.length ?? 0) > 1`)
	choose(b, "role", "account")
	choose(b, "account", "2")
	b.Click("dialog button[type=submit]")
	b.AwaitText("oscar is changed.", "globex")
	g.Admin().Get("/admin/users").Mentions(t, 200, `"name":"oscar","role":"account","account":2`)
	b.Click(`button[aria-label="Change oscar"]`)
	choose(b, "role", "viewer")
	b.Write("dialog input[name=password]", changedPassword)
	b.Click("dialog button[type=submit]")
	b.AwaitText("oscar is changed.", "All accounts")
	b.Press("Sign out (admin token)")
	b.AwaitText("Sign in with the token")
	b.Open(g.URL() + "/console") // the address is still that of the users, which oscar may not see
	b.AwaitText("Sign in with the token")
	b.Write("#name", "oscar")
	b.Write("#password", changedPassword+kb.Enter)
	b.AwaitText("Sign out oscar")
	b.ExpectNoProblems()
}

// TestConsoleShowsEachRoleItsViews signs in as an admin, a viewer, an operator and a user of one account.
func TestConsoleShowsEachRoleItsViews(t *testing.T) {
	t.Parallel()
	b := e2e.NewBrowser(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	g.AddUser("root", "admin", "")
	g.AddUser("oscar", "operator", "")
	g.WithToken("acme-all-0123456").Post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"4490","text":"Meet me at noon"}`).Mentions(t, 200, "id")
	g.AwaitProcessed()

	b.Open(g.URL() + "/console")
	b.AwaitText("Sign in with the token")
	b.Write("#name", "root")
	b.Write("#password", "not the password"+kb.Enter)
	b.AwaitText("The name or the password is wrong.")
	b.Do(chromedp.Reload())
	signInAs(b, "root")
	b.AwaitCondition("scripts cannot read the session", `sessionStorage.length === 0 && Object.values(localStorage).join() === "1" && document.cookie === ""`)
	b.Do(chromedp.Reload())
	b.AwaitText("Sign out root") // the session continues
	b.Press("Users")
	b.AwaitText("oscar", "Operator", "Never")
	b.Press("Add user")
	b.Write("dialog input[name=name]", "vera")
	b.Write("dialog input[name=password]", e2e.UserPassword+kb.Enter)
	b.AwaitText("vera may sign in as viewer.")
	b.Press("Audit log")
	b.AwaitText("Add a user with a password", "vera", "admin token", "root", "Sign in")
	b.Press("Sign out root")

	signInAs(b, "vera")
	b.Press("Events")
	b.AwaitText("Unrouted")
	b.Click("button.open")
	if strings.Contains(b.Text(), "Meet me at noon") {
		t.Error("the page for a viewer contains the text of a message")
	}
	if text := b.Text(); strings.Contains(text, "Replay") || strings.Contains(text, "Users") || strings.Contains(text, "Inventory") {
		t.Errorf("page for a viewer = %s, want no operations of other roles", text)
	}
	b.Open(g.URL() + "/console#users")
	b.AwaitText("The role viewer may not do this; allowed: admin.")
	b.Press("Password")
	b.Write("input[name=password]", e2e.UserPassword)
	b.Write("input[name=new_password]", changedPassword)
	b.Write("input[name=again]", "another one entirely"+kb.Enter)
	b.AwaitText("The two new passwords differ.")
	b.Set("input[name=again]", changedPassword)
	b.Press("Change password")
	b.AwaitText("The password is changed. Sign in with the new one.")
	b.Write("#name", "vera")
	b.Write("#password", changedPassword+kb.Enter)
	b.Press("Sign out vera")

	signInAs(b, "oscar")
	b.Press("Events")
	b.AwaitText("Unrouted")
	b.Click("button.open")
	b.AwaitText("Meet me at noon", "Replay this event")
	b.Press("Sign out oscar")
	checkUserOfAnAccount(b, g)
	b.ExpectNoProblems("status of 401", "status of 403")
}
