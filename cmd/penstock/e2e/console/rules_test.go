package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// choose selects an option from a list, as a user does.
func choose(b *e2e.Browser, name, value string) {
	b.T.Helper()
	b.Set("select[name="+name+"]", value)
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("select[name=%s]").dispatchEvent(new Event("change", { bubbles: true }))`, name)))
}

// TestRuleFormSendsWhatItShows saves rules of every trigger: the form sends the conditions that it shows,
// removes those that it hides, and refuses an incomplete comparison.
func TestRuleFormSendsWhatItShows(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	acme := g.WithToken("acme-all-0123456")
	const mail = `"actions":[{"action":"email","parameters":["ops@example.com"]}]`
	ids := map[string]string{"new": "new"}
	for name, r := range map[string]string{
		"battery": `{"name":"Low battery","on":"event","when":"event.battery < 20","clear":"event.battery > 30","for":"10m",` + mail + `}`,
		"silent":  `{"name":"Lost","on":"silent","silent_for":"2h",` + mail + `}`,
		"forward": `{"name":"Forward","on":"reading","batch":{"count":3},` + mail + `}`,
		"sms":     `{"name":"Text","on":"reading","when":"values.temperature > 30","clear":"values.temperature < 28","actions":[{"action":"sms","parameters":["447700900123"],"originator":"Penstock"}]}`,
	} {
		var created struct{ Data struct{ ID string } }
		acme.Post("/iot/rules", r).Decode(t, &created)
		ids[name] = created.Data.ID
	}
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.AwaitText("Back ends ready")
	open := func(name string) {
		b.Open(g.URL() + "/console#rules?account=1&id=" + ids[name])
		b.AwaitCondition("the form is complete", `Boolean(document.querySelector("select[name=trial_device]"))`)
	}
	save := func() {
		b.Press("Save")
		b.AwaitText("Saved.")
	}

	open("battery")
	b.Set("input[name=name]", "Battery")
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Battery"`, `"when":"event.battery < 20"`, `"clear":"event.battery > 30"`, `"for":"10m"`)
	choose(b, "mode", "none")
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Battery","enabled":true,"on":"event","devices":{},"repeat":"never"`)

	open("silent")
	choose(b, "on", "reading")
	b.Set("input[name=key]", "temperature")
	b.Set("input[name=limit]", "30")
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Lost","enabled":true,"on":"reading","devices":{},"when":"values.temperature > 30","repeat":"never"`)

	open("forward")
	b.AwaitCondition("the rule has no condition", `document.querySelector("select[name=mode]").value === "none"`)
	choose(b, "mode", "expression")
	b.Set("textarea[name=when]", "values.temperature > 31")
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Forward","enabled":true,"on":"reading","devices":{},"when":"values.temperature > 31","repeat":"never","ordered"`)

	open("sms")
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("input[name=originator]").value = ""`))
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"parameters":["447700900123"]}`, `"clear":"values.temperature < 28"`)
	choose(b, "on", "silent")
	choose(b, "silent_for", "other")
	b.Set("input[name=silent_for_other]", "3h")
	save()
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Text","enabled":true,"on":"silent","devices":{},"silent_for":"3h"`)

	open("new")
	b.Set("input[name=name]", "Status")
	choose(b, "on", "event")
	b.Set("textarea[name=parameters]", "ops@example.com")
	b.Press("Add rule")
	b.AwaitCondition("an expression is required", `document.querySelector("textarea[name=when]:invalid") !== null`)
	b.Set("textarea[name=when]", "event.battery <")
	b.Press("Add rule")
	b.AwaitCondition("the refusal is at the expression", `document.querySelector("textarea[name=when]").getAttribute("aria-invalid") === "true"`)
	b.Set("textarea[name=when]", "event.battery < 21")
	b.Press("Add rule")
	b.AwaitText("Rule added.")
	acme.Get("/iot/rules").Mentions(t, 200, `"when":"event.battery < 21"`)

	open("new")
	b.Set("input[name=name]", "Incomplete")
	b.Set("input[name=limit]", "30")
	b.Set("textarea[name=parameters]", "ops@example.com")
	b.Press("Add rule")
	b.AwaitCondition("a reading is required", `document.querySelector("input[name=key]:invalid") !== null`)
	choose(b, "mode", "none")
	b.Press("Add rule")
	b.AwaitText("Rule added.")
	acme.Get("/iot/rules").Mentions(t, 200, `"name":"Incomplete","enabled":true,"on":"reading","devices":{},"repeat"`)
	b.ExpectNoProblems("status of 422")
}

// TestTrialsFollowTheAccount chooses another account in the forms that try a decoder and a rule: they offer the
// records of that account.
func TestTrialsFollowTheAccount(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}]
accounts:
  - name: acme
    tokens: [{token: acme-all-0123456, scopes: [iot, webhook]}]
    locations: [{id: main, name: Main, imported: true}]
    decoders: [{id: sent, name: Sent by acme, type: other, codec: json, sensors: [{sensor_type_id: temperature, key: temperature}]}]
  - name: globex
    tokens: [{token: globex-all-012345, scopes: [iot, webhook]}]
    locations: [{id: main, name: Main, imported: true}, {id: greenhouse, name: Greenhouse}]
    decoders: [{id: sent, name: Sent by globex, type: other, codec: json, sensors: [{sensor_type_id: temperature, key: temperature}]}]
    rules: [{id: warm, name: Too warm, on: reading, devices: {location_id: main}, when: "values.temperature > 30", actions: [{action: email, parameters: ["ops@example.com"]}]}]
`)
	g.WithToken("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":31}`).Mentions(t, 200, "31")
	g.WithToken("globex-all-012345").Post("/webhooks/generic/barn?decoder_id=sent", `{"temperature":32}`).Mentions(t, 200, "32")
	g.AwaitProcessed()
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.AwaitText("Back ends ready")
	offered := func(name string) string {
		return `[...(document.querySelector("select[name=` + name + `]")?.options ?? [])].map((o) => o.text).join()`
	}

	b.Open(g.URL() + "/console#try?account=1")
	b.AwaitCondition("the devices of acme are offered", offered("device_id")+` === "None,shed"`)
	b.AwaitCondition("accounts are offered", offered("account")+` === "Any,acme,globex"`)
	choose(b, "account", "2")
	b.AwaitCondition("the devices of globex are offered", offered("device_id")+` === "None,barn" && `+offered("decoder_id")+` === "None,Sent by globex"`)
	choose(b, "account", "")
	b.AwaitCondition("the devices of all accounts are offered", offered("device_id")+` === "None,barn (globex),shed (acme)" || `+offered("device_id")+` === "None,shed (acme),barn (globex)"`)
	choose(b, "account", "2")
	b.AwaitCondition("the devices of globex are offered again", offered("device_id")+` === "None,barn"`)
	choose(b, "device_id", g.WithToken("globex-all-012345").AwaitDevice("barn"))
	b.Set("input[name=last]", "3")
	b.Click("#go")
	b.AwaitText("barn", "32")

	b.Open(g.URL() + "/console#tryrule?account=1")
	b.AwaitCondition("the devices of acme are offered", offered("device_id")+` === "shed"`)
	choose(b, "account", "2")
	b.AwaitCondition("the records of globex are offered", offered("device_id")+` === "barn" && `+offered("rule_id")+` === "The rule below,Too warm"`)
	choose(b, "rule_id", "warm")
	b.Click("#go")
	b.AwaitText("1 frame: raised once.", "Temperature 32 °C")
	b.Open(g.URL() + "/console#rules")
	b.AwaitText("Temperature is above 30", "location Main", "Test a rule")
	b.ExpectNoProblems()
}
