package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// ruleSampleIDs are the ids of two rules, and of an alarm of the first rule.
type ruleSampleIDs struct{ rule, spare, alarm string }

// createSampleRules creates a rule with a raised alarm and a rule that samples delete.
func createSampleRules(g *e2e.Gateway) (r ruleSampleIDs) {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	r.rule = acme.Create("/iot/rules", `{"name":"Cold","on":"reading","when":"values.temperature < -50",`+everyAction+`}`)
	r.spare = acme.Create("/iot/rules", `{"name":"Spare","on":"reading","batch":{"count":2,"every":"1h"},"ordered":true,"actions":[{"action":"email","parameters":["ops@example.com"]}]}`)
	acme.Post("/webhooks/generic", `{"id":"shed","temperature":-60,"door":"ajar"}`).Mentions(g.T, 200, "temperature")
	g.AwaitProcessed()
	var list struct{ Data []struct{ ID string } }
	acme.Get("/iot/alarms?rule_id="+r.rule).Decode(g.T, &list)
	if len(list.Data) != 1 {
		g.T.Fatalf("there are %d alarms, want 1", len(list.Data))
	}
	r.alarm = list.Data[0].ID
	return r
}

// everyAction is the field "actions" of a rule, with an action of each kind.
const everyAction = `"actions":[{"action":"http_post","parameters":["https://example.com/a"],"body":"{t: values.temperature}"},{"action":"http_get","parameters":["https://example.com/b?s=%state"]},` +
	`{"action":"email","parameters":["ops@example.com"]},{"action":"sms","parameters":["447700900123"],"originator":"Shed"}]`

// ruleSamples returns successful requests to the operations on rules and alarms.
func ruleSamples(device string, ids ruleSampleIDs) []sample {
	const js = "application/json"
	const ruleFields = `"name":"Warm","enabled":true,"on":"reading","devices":{"decoder_id":"sent","location_id":"loc1","ids":["none"],"name":"s*"},"when":"values.temperature > 40","clear":"values.temperature < 35","for":"10m","repeat":"1h",` + everyAction
	return []sample{
		{"createRule", "POST", "/iot/rules", js, `{` + ruleFields + `}`},
		{"createRule", "POST", "/iot/rules", js, `{"name":"Silence","on":"silent","silent_for":"2h","repeat":"6h","mistyped":1,"actions":[{"action":"email","parameters":["ops@example.com"]}]}`},
		{"createRule", "POST", "/iot/rules", js, `{"name":"Unmapped","on":"reading","when":"values.nothing > 40","enabled":false,"actions":[{"action":"email","parameters":["ops@example.com"]}]}`},
		{"createRule", "POST", "/iot/rules", js, `{"name":"Hourly","on":"reading","batch":{"every":"1h"},"actions":[{"action":"http_post","parameters":["https://example.com/a"]}]}`},
		{"listRules", "GET", "/iot/rules", "", ""},
		{"listRules", "GET", "/iot/rules?page=1&per_page=2", "", ""},
		{"getRule", "GET", "/iot/rules/" + ids.rule, "", ""},
		{"getRule", "GET", "/iot/rules/" + ids.spare, "", ""},
		{"patchRule", "PATCH", "/iot/rules/" + ids.spare, js, `{"name":"Spared","enabled":null,"batch":{"count":3},"when":null}`},
		{"tryRule", "POST", "/iot/rules/try", js, `{"rule":{` + ruleFields + `,"devices":{},"for":"","when":"values.temperature < -50"},"device_id":"` + device + `","last":100}`},
		{"tryRule", "POST", "/iot/rules/try", js, `{"rule_id":"` + ids.rule + `","device_id":"` + device + `"}`},
		{"listAlarms", "GET", "/iot/alarms", "", ""},
		{"listAlarms", "GET", "/iot/alarms?state=raised&rule_id=" + ids.rule + "&device_id=" + device + "&from=2020-01-01%2000:00:00&to=2099-01-01%2000:00:00&limit=1", "", ""},
		{"getAlarm", "GET", "/iot/alarms/" + ids.alarm, "", ""},
		{"patchAlarm", "PATCH", "/iot/alarms/" + ids.alarm, js, `{"acknowledged":true,"note":"Seen"}`},
		{"muteAlarms", "POST", "/iot/alarms/mute", js, `{"rule_id":"` + ids.rule + `","device_id":"` + device + `","for":"1h"}`},
		{"listAlarms", "GET", "/iot/alarms?rule_id=" + ids.rule, "", ""},
		{"listAlarmsOfAccount", "GET", "/admin/alarms?rule_id=" + ids.rule, "", ""},
		{"unmuteAlarms", "DELETE", "/iot/alarms/mute?rule_id=" + ids.rule + "&device_id=" + device, "", ""},
		{"listRulesOfAccount", "GET", "/admin/rules?account=1", "", ""},
		{"listRulesOfAccount", "GET", "/admin/rules?account=1&limit=1", "", ""},
		{"listRulesOfAccount", "GET", "/admin/rules?cursor=MSAwIA", "", ""},
		{"listAlarmsOfAccount", "GET", "/admin/alarms?limit=5", "", ""},
		{"listAlarmsOfAccount", "GET", "/admin/alarms?account=1&state=raised&rule_id=" + ids.rule + "&device_id=" + device + "&from=2020-01-01T00:00:00Z&to=2099-01-01T00:00:00Z&limit=5", "", ""},
		{"deleteRule", "DELETE", "/iot/rules/" + ids.spare, "", ""},
	}
}

// ruleMistakes returns requests that the operations on rules and alarms refuse.
func ruleMistakes() []refusedSample {
	const js = "application/json"
	return []refusedSample{
		{sample{"", "POST", "/iot/alarms/mute", js, `{}`}, 422},
		{sample{"", "DELETE", "/iot/alarms/mute?rule_id=none", "", ""}, 404},
		{sample{"", "DELETE", "/iot/alarms/mute?x=y", "", ""}, 422},
		{sample{"", "POST", "/iot/rules", js, `{"on":"reading"}`}, 422},
		{sample{"", "POST", "/iot/rules", js, `{"name":"n","on":"reading","when":"values.t >","actions":[{"action":"http_get","parameters":["http://127.0.0.1/"]}]}`}, 422},
		{sample{"", "GET", "/iot/rules?page=0", "", ""}, 422},
		{sample{"", "GET", "/iot/rules/none", "", ""}, 404},
		{sample{"", "PATCH", "/iot/rules/none", js, `{"name":"n"}`}, 404},
		{sample{"", "PATCH", "/iot/rules/none", js, `{"name":7}`}, 422},
		{sample{"", "DELETE", "/iot/rules/none", "", ""}, 404},
		{sample{"", "POST", "/iot/rules/try", js, `{"rule_id":"none","device_id":"none"}`}, 404},
		{sample{"", "POST", "/iot/rules/try", js, `{"last":0}`}, 422},
		{sample{"", "GET", "/iot/alarms?state=loud", "", ""}, 422},
		{sample{"", "GET", "/iot/alarms/none", "", ""}, 404},
		{sample{"", "PATCH", "/iot/alarms/none", js, `{"acknowledged":true}`}, 404},
		{sample{"", "PATCH", "/iot/alarms/none", js, `{"acknowledged":false}`}, 422},
		{sample{"", "GET", "/admin/rules?cursor=1", "", ""}, 422},
		{sample{"", "GET", "/admin/rules?account=999", "", ""}, 404},
		{sample{"", "GET", "/admin/alarms?account=1&state=loud", "", ""}, 422},
		{sample{"", "GET", "/admin/alarms?account=999", "", ""}, 404},
	}
}
