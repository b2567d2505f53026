package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/ledger"
)

// TestEveryViewIsAccessible opens every view on a wide light screen and on a narrow dark screen. axe finds
// no serious violation, the page is not wider than the screen, and the browser reports no problem.
func TestEveryViewIsAccessible(t *testing.T) {
	t.Parallel()
	axe := e2e.Axe(t)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	views := createRecordsForViews(g)
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.AwaitText("With name and password", "With the admin token", "Sign in with the token")
	b.Inspect("sign-in", axe, "Sign in with the token")
	b.SignIn()
	b.AwaitText("Back ends ready")
	for _, v := range views {
		b.Do(chromedp.EmulateViewport(1280, 900))
		b.Open(g.URL() + "/console#" + v.address)
		b.AwaitText(v.wantTexts...)
		b.Inspect(v.name, axe, v.wantTexts...)
	}
	b.ExpectNoProblems()
}

// view is a page of the console, with texts that it must show.
type view struct {
	name, address string
	wantTexts     []string
}

// createRecordsForViews creates records for every view, and returns the views.
func createRecordsForViews(g *e2e.Gateway) []view {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	for n := range 20 {
		readAt := time.Now().Add(-time.Duration(n) * 7 * time.Minute).UTC().Format(time.RFC3339)
		acme.Post("/webhooks/generic/shed?decoder_id=sent", fmt.Sprintf(`{"time":%q,"temperature":%d}`, readAt, 20+n%7)).Mentions(g.T, 200, "temperature")
	}
	acme.Post("/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(g.T, "chirpstack/up.json")).Expect(g.T, 200, "")
	acme.Post("/inbound/sms/json", `{"id":"m1","from":"447700900123","to":"4490","text":"Nobody takes it"}`).Mentions(g.T, 200, "id")
	acme.Post("/inbound/sms/json", `{"id":"m2","from":"447700900123","to":"447800012345","text":"A relay takes it"}`).Mentions(g.T, 200, "id")
	e2e.CustomerOf(g).Post("/v2/sms/send", `{"destinations":["447700909001"],"message":"`+strings.Repeat("Long ", 60)+`"}`).Mentions(g.T, 200, "id")
	postUsage(g)
	g.AwaitProcessed()
	g.AwaitJob(e2e.CustomerOf(g).Post("/v3/mno/8944000000000000012/suspend", ""))
	g.Admin().Put("/admin/inventory", `{"document":"rules","accounts":[{"name":"acme","rules":[{"id":"warm","name":"Too warm","on":"reading","when":"values.temperature > 22",
		"actions":[{"action":"email","parameters":["ops@example.com"]}]}]}]}`).Mentions(g.T, 200, "acme")
	acme.Post("/webhooks/generic/shed", `{"temperature":31}`).Mentions(g.T, 200, "31")
	g.AwaitProcessed()
	g.AddUser("vera", "viewer", "")
	device, token := acme.AwaitDevice("shed"), ledger.TokenID(g.MintToken().Token)
	deviceAddress := "devices?id=" + device + "&account=1"
	return []view{
		{"overview", "now", []string{"Back ends ready", "Devices silent", "1\nSMS rejected", "1 × message without a relay", "1 × SMS rejected", "Received, per minute"}},
		{"system", "system", []string{"Back ends", "Database", "Waiting for a retry", "Records on disk"}},
		{"events", "events", []string{"Unrouted", "Frame", "Call and usage records", "50 usage records", "447700900123 → 4490"}},
		{"deliveries", "deliveries", []string{"acme", "Inbound SMS", "Too warm", "Job completed: Suspend a SIM", "SIM state changed: 8944000000000000012", "Tokens claimed"}},
		{"jobs", "jobs", []string{"Suspend a SIM", "Claim tokens", "1 token"}},
		{"trace", "trace?id=" + g.Events("kind=uplink")[0].ID, []string{"Timeline", "Received"}},
		{"devices", "devices", []string{"shed", "dBm", "31 °C", "Decoded by the sender"}},
		{"device", deviceAddress, []string{"31 °C", "minimum to maximum", "About this device"}},
		{"device-events", deviceAddress + "&tab=events", []string{"Raw frames", "Temperature 31 °C"}},
		{"device-alarms", deviceAddress + "&tab=alarms", []string{"Raised", "Acknowledge", "Mute"}},
		{"device-settings", deviceAddress + "&tab=settings", []string{"Frame logging", "Add marker", "Delete device"}},
		{"decoders", "decoders", []string{"lpp", "OK"}},
		{"decoder", "decoders?id=sent&account=1", []string{"Replay stored frames", "no failures", "Map key"}},
		{"rules", "rules", []string{"Too warm", "Enabled"}},
		{"rule", "rules?id=warm&account=1", []string{"Too warm", "Test on the last 10 frames", "Delete rule"}},
		{"new-rule", "rules?id=new&account=1", []string{"Add rule", "Met for at least"}},
		{"alarms", "alarms", []string{"Raised", "Too warm", "shed", "Temperature 31 °C"}},
		{"try", "try?decoder_id=lpp&form=hex&payload=01670110&account=1", []string{"27.2"}},
		{"tryrule", "tryrule?account=1&rule_id=warm&device_id=" + device, []string{"Effect", "Temperature 31 °C"}},
		{"messages", "messages", []string{"447700909001", "Nobody takes it", "acme"}},
		{"messages-of-account", "messages?account=1&direction=out", []string{"447700909001", "credits left"}},
		{"relays", "relays", []string{"4478000", "desk@example.com"}},
		{"relay", "relays?id=g1&kind=geo&account=1", []string{"Preview", "Inventory document default"}},
		{"explain", "explain?to=447800012345", []string{"Result"}},
		{"start", "start", []string{"From an empty gateway", "Received from shed."}},
		{"accounts", "accounts", []string{"acme", "Credit"}},
		{"account", "accounts?id=1", []string{"Add API token", "Post frames", "Inventory document “default”"}},
		{"credit", "accounts?id=1&tab=credit", []string{"Charge for a message"}},
		{"sims", "sims", []string{e2e.ActiveSIM, " GB"}},
		{"sim", "sims?id=" + e2e.ActiveSIM + "&account=1", []string{"Data per day", "By month", "30 days", "Limit notices to"}},
		{"ledgers", "ledgers", []string{"Assets", "All signed", "Find a token"}},
		{"ledger", "ledgers?ledger=l1&account=1", []string{"Assets", "Generate token", "Claims left"}},
		{"ledger-entries", "ledgers?ledger=l1&account=1&tab=entries", []string{"Generated", "Claimed"}},
		{"token", "ledgers?token=" + token + "&account=1",
			[]string{"Verified in this browser: the head is signed", "every entry leads to its root"}},
		{"inventory", "inventory", []string{"acme", "3 tokens"}},
		{"users", "users", []string{"vera"}},
		{"audit", "audit", []string{"Add a user with a password"}},
		{"password", "password", []string{"The admin token and users of a sign-in provider have no password here."}},
	}
}

// postUsage posts usage records of 25 days for a SIM.
func postUsage(g *e2e.Gateway) {
	g.T.Helper()
	lines := []string{"id,iccid,start_time,type,bytes,duration"}
	for day := range 25 {
		startTime := time.Now().Add(-time.Duration(day) * 24 * time.Hour).UTC().Format(time.RFC3339)
		lines = append(lines, fmt.Sprintf("d%d,%s,%s,data,%d,60", day, e2e.ActiveSIM, startTime, (1<<30)/(day+1)), fmt.Sprintf("s%d,%s,%s,sms,,", day, e2e.ActiveSIM, startTime))
	}
	g.WithToken("acme-all-0123456").With("Content-Type", "text/csv").Post("/inbound/cdr/sim", strings.Join(lines, "\n")+"\n").Mentions(g.T, 200, `"refused":0`)
}

// maxPhonePage is the largest height of a page on a phone, in pixels.
const maxPhonePage = 6000

// TestPhonePagesAreShort opens every list with 100 records on a phone.
func TestPhonePagesAreShort(t *testing.T) {
	t.Parallel()
	const rows = 100
	repeat := func(format string) string {
		var lines strings.Builder
		for n := range rows {
			fmt.Fprintf(&lines, format, n)
		}
		return lines.String()
	}
	g := e2e.Start(t, e2e.Embedded(), `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}]
accounts:
  - name: acme
    credit: 1000
    tokens: [{token: acme-all-0123456, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}]
    locations: [{id: main, name: Main, imported: true}]
    relays:
      geo: [`+repeat(`{id: g%[1]d, prefix: "4478%03[1]d", action: email, parameters: ["desk@example.com"]}, `)+`]
    decoders: [{id: sent, name: Sent, type: other, codec: json, sensors: [{sensor_type_id: temperature, key: temperature}]}, `+
		repeat(`{id: d%[1]d, name: Decoder %[1]d, type: other, codec: json}, `)+`]
    rules: [{id: warm, name: Too warm, on: reading, when: "values.temperature > 30", actions: [{action: email, parameters: ["ops@example.com"]}]}, `+
		repeat(`{id: r%[1]d, name: Rule %[1]d, on: reading, when: "values.temperature > 90", actions: [{action: email, parameters: ["ops@example.com"]}]}, `)+`]
    sims: [`+repeat(`{iccid: "8944%015[1]d", current_state: active}, `)+`]
    ledgers: [`+repeat(`{id: l%[1]d, name: Ledger %[1]d}, `)+`]
`+repeat("  - {name: customer-%d}\n"))
	acme := g.WithToken("acme-all-0123456")
	for n := range rows {
		acme.Post(fmt.Sprintf("/webhooks/generic/device-%d?decoder_id=sent", n), `{"temperature":31}`).Mentions(t, 200, "31")
		acme.Post("/inbound/sms/json", fmt.Sprintf(`{"id":"m%[1]d","from":"447700900123","to":"4478%03[1]d","text":"Hello"}`, n)).Mentions(t, 200, "id")
		if n%4 == 0 { // hashing a password takes long
			g.AddUser(fmt.Sprintf("user-%d", n), "viewer", "")
		}
	}
	g.AwaitProcessed()
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.AwaitText("Back ends ready")
	b.Do(chromedp.EmulateViewport(390, 844))
	for _, view := range []string{
		"events", "deliveries", "devices", "alarms", "rules", "decoders", "messages", "relays", "sims", "ledgers", "accounts", "users", "inventory", "audit",
	} {
		b.Open(g.URL() + "/console#" + view)
		b.AwaitCondition(view+" is shown in full", `document.querySelectorAll("main tbody tr, main details").length > 10 && !document.body.innerText.includes("Loading…")`)
		b.AwaitCondition(fmt.Sprintf("%s is at most %d pixels high", view, maxPhonePage), fmt.Sprintf("document.documentElement.scrollHeight <= %d", maxPhonePage))
	}
	b.ExpectNoProblems()
}
