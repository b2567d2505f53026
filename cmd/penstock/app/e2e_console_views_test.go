package app

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/relay/ledger"
)

var screenshots = flag.String("screenshots", "", "a folder to which TestEveryViewIsAccessible writes a picture of every view")

// shape is a screen of a reader.
type shape struct {
	name, scheme string
	width        int64
}

func shapes() []shape {
	return []shape{{"desktop-light", "light", 1280}, {"desktop-dark", "dark", 1280}, {"phone-light", "light", 390}, {"phone-dark", "dark", 390}}
}

// TestEveryViewIsAccessible opens every view at desktop and phone width, light and dark:
// axe finds nothing serious, the page is not wider than the screen, and the browser has
// nothing to complain of.
func TestEveryViewIsAccessible(t *testing.T) {
	axe, err := os.ReadFile(filepath.Join("..", "..", "..", ".tools", "node", "node_modules", "axe-core", "axe.min.js"))
	if err != nil && os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip("skipped: no axe-core, and PENSTOCK_TEST_SKIP_REAL=1")
	}
	if err != nil {
		t.Fatalf("no axe-core: %v; make test installs it, PENSTOCK_TEST_SKIP_REAL=1 leaves it out", err)
	}
	g := start(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	views := g.furnished()
	b := browserFor(t, 10*patience)
	b.do(chromedp.Navigate(g.url() + "/console"))
	b.shows("Sign in with the token")
	b.inspect("sign-in", string(axe))
	b.write("#token", adminToken+kb.Enter)
	b.shows("Back ends ready")
	for _, v := range views {
		b.do(chromedp.EmulateViewport(1280, 900))
		b.do(chromedp.Navigate(g.url() + "/console#" + v.address))
		b.shows(v.shows...)
		b.inspect(v.name, string(axe))
	}
	b.quiet()
}

// view is a page of the console that has something to show.
type view struct {
	name, address string
	shows         []string
}

// furnished gives the gateway something for every view and returns the views.
func (g *gateway) furnished() []view {
	g.t.Helper()
	acme := g.as("acme-all-0123456")
	for n := range 20 {
		at := time.Now().Add(-time.Duration(n) * 7 * time.Minute).UTC().Format(time.RFC3339)
		acme.post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d}`, at, 20+n%7)).mentions(g.t, 200, "temperature")
	}
	acme.post("/webhooks/lorawan?decoder_id=lpp&event=up", fixture(g.t, "chirpstack/up.json")).is(g.t, 200, "")
	acme.post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"4490","text":"Nobody takes it"}`).mentions(g.t, 200, "id")
	acme.post("/inbound/sms/json", `{"id":"m2","from":"447700900123","to":"447800012345","text":"A relay takes it"}`).mentions(g.t, 200, "id")
	g.as("").with("X-Auth-Token", "acme-all-0123456").post("/v2/sms/send", `{"destinations":["447700909001"],"message":"`+strings.Repeat("Long ", 60)+`"}`).mentions(g.t, 200, "id")
	g.used()
	g.settled()
	g.ended(g.cellular("acme-all-0123456").post("/v3/mno/8944000000000000012/suspend", ""))
	g.admin().put("/admin/inventory", `{"document":"rules","accounts":[{"name":"acme","rules":[{"id":"warm","name":"Too warm","on":"reading","when":"values.temperature > 22",
		"actions":[{"action":"email","parameters":["ops@example.com"]}]}]}]}`).mentions(g.t, 200, "acme")
	acme.post("/webhooks/generic/shed", `{"temperature":31}`).mentions(g.t, 200, "31")
	g.settled()
	g.addUser("vera", "viewer", "")
	device, token := acme.device("shed"), ledger.TokenID(g.mint().token)
	return []view{
		{"overview", "now", []string{"Back ends ready", "Came in, per minute", "Records on disk"}},
		{"events", "events", []string{"unrouted"}}, {"deliveries", "deliveries", []string{"acme (1)"}},
		{"jobs", "jobs", []string{"suspend a SIM", "claim tokens", "1 of 1 done"}},
		{"trace", "trace?id=" + g.events("kind=uplink")[0].ID, []string{"The way of it", "received"}}, {"devices", "devices", []string{"shed", "dBm"}},
		{"device", "devices?id=" + device + "&account=1", []string{"31 °C", "Minimum, mean and maximum", "Raw frames", "raised"}},
		{"decoders", "decoders", []string{"lpp", "ok"}}, {"decoder", "decoders?id=sent&account=1", []string{"Replay history", "none fails"}},
		{"rules", "rules", []string{"Too warm"}}, {"alarms", "alarms", []string{"raised", "acme (1)", "shed", "temperature 31 °C"}},
		{"try", "try?decoder_id=lpp&form=hex&payload=01670110&account=1", []string{"27.2"}}, {"tryrule", "tryrule?account=1&rule_id=warm&device_id=" + device, []string{"What would happen"}},
		{"messages", "messages?account=1", []string{"447700909001", "credits"}}, {"relays", "relays", []string{"4478000", "desk@example.com"}},
		{"relay", "relays?id=g1&kind=geo&account=1", []string{"Which relay takes a message", "inventory document default"}},
		{"explain", "explain?to=447800012345", []string{"Verdict"}}, {"credit", "credit", []string{"What changed it"}}, {"credit-of-account", "credit?account=1", []string{"message sent"}},
		{"sims", "sims", []string{activeSIM, " GiB"}}, {"sim", "sims?id=" + activeSIM + "&account=1", []string{"Data per day", "Usage over time", "Used"}},
		{"ledgers", "ledgers", []string{"l1", "all signed"}}, {"ledger", "ledgers?ledger=l1&account=1", []string{"token made", "claimed"}},
		{"token", "ledgers?token=" + token + "&account=1", []string{"Verified in this browser: the head is signed", "the entry leads to the signed root"}},
		{"inventory", "inventory", []string{"acme (1)", "3 tokens"}}, {"users", "users", []string{"vera"}}, {"audit", "audit", []string{"addUser"}}, {"password", "password", []string{"Present password"}},
	}
}

// used has records of a month of a SIM.
func (g *gateway) used() {
	g.t.Helper()
	lines := []string{"id,iccid,start_time,type,bytes,duration"}
	for day := range 25 {
		at := time.Now().Add(-time.Duration(day) * 24 * time.Hour).UTC().Format(time.RFC3339)
		lines = append(lines, fmt.Sprintf("d%d,%s,%s,data,%d,60", day, activeSIM, at, (1<<30)/(day+1)), fmt.Sprintf("s%d,%s,%s,sms,,", day, activeSIM, at))
	}
	g.as("acme-all-0123456").with("Content-Type", "text/csv").post("/inbound/cdr/sim", strings.Join(lines, "\n")+"\n").mentions(g.t, 200, `"refused":0`)
}

// inspect looks at the present view in every shape.
func (b *browser) inspect(name, axe string) {
	b.t.Helper()
	for _, s := range shapes() {
		b.do(chromedp.EmulateViewport(s.width, 900))
		b.emulate(s.scheme)
		eventually(b.t, name+" has its width", func() (any, bool) { return nil, b.holds(fmt.Sprintf("innerWidth === %d", s.width)) })
		if !b.holds("document.documentElement.scrollWidth <= innerWidth") {
			b.t.Errorf("%s, %s: the page is wider than the screen", name, s.name)
		}
		b.do(chromedp.Evaluate[chromedp.Void](axe + "; undefined"))
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
			.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 4).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | "))))`, chromedp.EvalAwaitPromise))
		must(b.t, err)
		var wrong []string
		must(b.t, json.Unmarshal([]byte(found), &wrong))
		for _, w := range wrong {
			b.t.Errorf("%s, %s: %s", name, s.name, w)
		}
		if *screenshots != "" {
			b.picture(filepath.Join(*screenshots, name+"-"+s.name+".png"))
		}
	}
}

// emulate has the browser say that the reader prefers light or dark.
func (b *browser) emulate(scheme string) {
	b.t.Helper()
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}})
	must(b.t, err)
}

// picture writes what the reader sees, with all that scrolling shows.
func (b *browser) picture(path string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	must(b.t, err)
	must(b.t, os.WriteFile(path, png, 0o644))
}
