package iotapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// encodedRule returns the JSON of a rule with the given fields.
func encodedRule(id, fields string) string {
	return `{"id":"` + id + `",` + fields + `,"failures":{"count":0,"last_at":null,"last":""},"created_at":"2026-03-01 12:00:00","updated_at":"2026-03-01 12:00:00"}`
}

const (
	mail = `"actions":[{"action":"email","parameters":["ops@example.com"]}]`
	warm = `"name":"Warm","enabled":true,"on":"reading","devices":{"decoder_id":"d1"},"when":"values.t > 30","clear":"values.t < 25","repeat":"never","ordered":false,` + mail
)

func TestRulesAreCreatedAndChanged(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for _, tc := range []struct{ name, line, body, want string }{
		{"a rule", "POST /iot/rules", `{"name":"Warm","on":"reading","devices":{"decoder_id":"d1"},"when":"values.t > 30","clear":"values.t < 25",` + mail + `}`,
			`201 {"data":` + encodedRule("rule1", warm) + `,"warnings":[]}`},
		{"a rule with every field", "POST /iot/rules", `{"name":"n","enabled":false,"on":"event","devices":{"location_id":"loc1","ids":["id1"],"name":"p*"},"when":"event.type == \"join\"","for":"60s","repeat":"1h","ordered":true,` + mail + `}`,
			`201 {"data":` + encodedRule("rule2", `"name":"n","enabled":false,"on":"event","devices":{"location_id":"loc1","ids":["id1"],"name":"p*"},"when":"event.type == \"join\"","for":"1m","repeat":"1h","ordered":true,`+mail) + `,"warnings":[]}`},
		{"a key that no decoder maps", "POST /iot/rules", `{"name":"n","on":"reading","when":"values.tt > 30",` + mail + `}`,
			`201 {"data":` + encodedRule("rule3", `"name":"n","enabled":true,"on":"reading","devices":{},"when":"values.tt > 30","repeat":"never","ordered":false,`+mail) + `,"warnings":["…tt…"]}`},
		{"unknown fields", "POST /iot/rules", `{"name":"n","on":"reading","wen":"values.t > 30","id":"mine","devices":{"id":"x"},"actions":[{"action":"email","parameters":["ops@example.com"],"to":"x"}]}`,
			`201 {"data":` + encodedRule("rule4", `"name":"n","enabled":true,"on":"reading","devices":{},"repeat":"never","ordered":false,`+mail) +
				`,"warnings":["The field actions[0].to is unknown and was ignored.","The field devices.id is unknown and was ignored.","The field id is unknown and was ignored.","The field wen is unknown and was ignored."]}`},
		{"a rule without fields", "POST /iot/rules", `{}`,
			invalidFields(`"actions":["…"],"name":["The name field is required."],"on":["on must be reading, silent or event."]`)},
		{"a condition that does not compile", "POST /iot/rules", `{"name":"n","on":"reading","when":"values.t > 30 and\n  vlaues.t == 1",` + mail + `}`,
			invalidFields(`"when":["line 2, column 3: unknown name vlaues; did you mean values?"]`)},
		{"an invalid duration", "POST /iot/rules", `{"name":"n","on":"silent","silent_for":"2 hours",` + mail + `}`,
			invalidFields(`"silent_for":["The silent for must be a duration such as 90s, 10m or 2h30m."]`)},
		{"fields of the wrong type", "POST /iot/rules", `{"devices":{"ids":"id1"}}`, invalidFields(`"devices.ids":["The devices.ids must be an array."]`)},
		{"a flag of the wrong type", "POST /iot/rules", `{"enabled":"yes"}`, invalidFields(`"enabled":["The enabled must be true or false."]`)},
		{"invalid JSON", "POST /iot/rules", `{"name":`, `422 {"message":"Invalid JSON."}`},
		{"a JSON array", "POST /iot/rules", `[]`, `422 {"message":"Invalid JSON."}`},
		{"one rule", "GET /iot/rules/rule1", "", `200 {"data":` + encodedRule("rule1", warm) + `}`},
		{"an unknown rule", "GET /iot/rules/none", "", "404"},
		{"a page of rules", "GET /iot/rules?page=1&per_page=1", "", `200 {"data":[` + encodedRule("rule1", warm) + `],"meta":{"pagination":{"total":4,"count":1,"per_page":1,"current_page":1,"total_pages":4}}}`},
		{"a page after the last", "GET /iot/rules?page=9&per_page=3", "", `200 {"data":[],"meta":{"pagination":{"total":4,"count":0,"per_page":3,"current_page":9,"total_pages":2}}}`},
		{"an unknown parameter", "GET /iot/rules?enabled=true", "", invalidFields(`"enabled":["This parameter is unknown: the operation takes page, per_page."]`)},
		{"a page size of 0", "GET /iot/rules?per_page=0", "", invalidFields(`"per_page":["The per page must be between 1 and 500."]`)},
		{"a change", "PATCH /iot/rules/rule2", `{"name":"m","enabled":null,"repeat":"","devices":{},"for":""}`,
			`200 {"data":` + encodedRule("rule2", `"name":"m","enabled":false,"on":"event","devices":{},"when":"event.type == \"join\"","repeat":"never","ordered":true,`+mail) + `,"warnings":[]}`},
		{"a change to an invalid value", "PATCH /iot/rules/rule2", `{"on":"sometimes"}`, invalidFields(`"on":["on must be reading, silent or event."]`)},
		{"a change of an unknown rule", "PATCH /iot/rules/none", `{"name":"m"}`, "404"},
		{"a deletion", "DELETE /iot/rules/rule2", "", "204"},
		{"a deletion of a deleted rule", "DELETE /iot/rules/rule2", "", "404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); !matches(tc.want, got) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := a.ask("POST /iot/rules", "acme", `{}`, "Content-Type", "text/plain"); got != `415 {"message":"Content-Type must be application/json."}` {
		t.Errorf("another content type: got %s, want 415", got)
	}
}

// matches reports whether an answer matches a pattern, in which … matches any text.
func matches(want, got string) bool {
	parts := strings.Split(want, "…")
	for i, part := range parts {
		start := strings.Index(got, part)
		if start < 0 || i == 0 && start > 0 {
			return false
		}
		got = got[start+len(part):]
	}
	return got == "" || strings.HasSuffix(want, "…")
}

// ingestTemperature ingests a frame of the device id1 that arrives after the delay.
func (a *api) ingestTemperature(record string, degrees float64, delay time.Duration) {
	a.t.Helper()
	receivedAt := a.now.Add(delay)
	ingested, err := a.service.Ingest(a.t.Context(), []iot.Arrival{{
		RecordID: record, Account: 1, ReceivedAt: receivedAt, Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: "aabbcc001122", NetworkTime: receivedAt, Object: map[string]any{"t": degrees, "door": "shut"}},
	}})
	relaytest.NoError(a.t, err)
	if ingested[0].Refused != "" {
		a.t.Fatal(ingested[0].Refused)
	}
}

func TestAlarmsAreListedAndAcknowledged(t *testing.T) {
	a := newAPI(t)
	a.fill()
	a.ask("POST /iot/rules", "acme", `{"name":"Warm","on":"reading","when":"values.t > 30","clear":"values.t < 25",`+mail+`}`)
	a.ingestTemperature("n1-u2", 31, time.Minute)
	a.ingestTemperature("n1-u3", 20, 2*time.Minute)
	a.ingestTemperature("n1-u4", 40, 3*time.Minute)
	list := a.ask("GET /iot/alarms", "acme", "")
	raised := `{"id":"…","rule_id":"rule1","device_id":"id1","state":"raised","raised_at":"2026-03-01 12:03:00","cleared_at":null,` +
		`"readings":{"door":{"text":"shut","units":""},"t":{"value":40,"units":"°C"}},"acknowledged_at":null,"acknowledged_by":"","note":"","muted_until":null}`
	cleared := `{"id":"…","rule_id":"rule1","device_id":"id1","state":"cleared","raised_at":"2026-03-01 12:01:00","cleared_at":"2026-03-01 12:02:00",` +
		`"readings":{"door":{"text":"shut","units":""},"t":{"value":31,"units":"°C"}},"acknowledged_at":null,"acknowledged_by":"","note":"","muted_until":null}`
	if !matches(`200 {"data":[`+raised+`,`+cleared+`],"meta":{"next":""}}`, list) {
		t.Fatalf("alarms = %s, want a raised and a cleared one", list)
	}
	var ids struct{ Data []struct{ ID string } }
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(list, "200 ")), &ids))
	newest := "/iot/alarms/" + ids.Data[0].ID
	empty := `200 {"data":[],"meta":{"next":""}}`
	acknowledged := strings.Replace(raised, `"acknowledged_at":null,"acknowledged_by":"","note":""`, `"acknowledged_at":"2026-03-01 12:00:00","acknowledged_by":"token …","note":"Seen"`, 1)
	for _, tc := range []struct{ name, line, body, want string }{
		{"raised alarms", "GET /iot/alarms?state=raised", "", `200 {"data":[` + raised + `],"meta":{"next":""}}`},
		{"cleared alarms", "GET /iot/alarms?state=cleared&rule_id=rule1&device_id=id1", "", `200 {"data":[` + cleared + `],"meta":{"next":""}}`},
		{"alarms of a period of one second", "GET /iot/alarms?from=2026-03-01%2012:01:00&to=2026-03-01T12:01:00Z", "", `200 {"data":[` + cleared + `],"meta":{"next":""}}`},
		{"alarms of another rule", "GET /iot/alarms?rule_id=none", "", empty},
		{"alarms of another device", "GET /iot/alarms?device_id=none", "", empty},
		{"invalid parameters", "GET /iot/alarms?state=loud&limit=0&from=soon", "",
			`422 {"errors":{"from":["The from does not match the format YYYY-MM-DD HH:mm:ss."],"limit":["The limit must be between 1 and 500."],"state":["The selected state is invalid."]},` + invalid + `}`},
		{"an alarm", "GET " + newest, "", `200 {"data":` + raised + `}`},
		{"an unknown alarm", "GET /iot/alarms/none", "", "404"},
		{"an alarm is acknowledged", "PATCH " + newest, `{"acknowledged":true,"note":"Seen"}`, `200 {"data":` + acknowledged + `}`},
		{"the acknowledgement is stored", "GET " + newest, "", `200 {"data":` + acknowledged + `}`},
		{"an acknowledgement of an unknown alarm", "PATCH /iot/alarms/none", `{"acknowledged":true}`, "404"},
		{"a rule is muted", "POST /iot/alarms/mute", `{"rule_id":"rule1","for":"1h"}`, `201 {"data":{"rule_id":"rule1","device_id":"","until":"2026-03-01 13:00:00","muted_by":"token …"}}`},
		{"an alarm of a muted rule", "GET " + newest, "", `200 {"data":` + strings.Replace(acknowledged, `"muted_until":null`, `"muted_until":"2026-03-01 13:00:00"`, 1) + `}`},
		{"the mute of another device", "DELETE /iot/alarms/mute?rule_id=rule1&device_id=id1", "", "404"},
		{"the mute is ended", "DELETE /iot/alarms/mute?rule_id=rule1", "", "204"},
		{"an alarm after the mute ended", "GET " + newest, "", `200 {"data":` + acknowledged + `}`},
		{"a mute without a rule or device", "POST /iot/alarms/mute", `{"for":"soon"}`, `422 {"errors":{"for":["The for must be a duration of at most 720h, such as 1h."],"rule_id":["The rule_id or the device_id is required."]},` + invalid + `}`},
		{"a note without an acknowledgement", "PATCH " + newest, `{"note":"x"}`, `422 {"errors":{"acknowledged":["The acknowledged field is required."]},` + invalid + `}`},
		{"an acknowledgement cannot be withdrawn", "PATCH " + newest, `{"acknowledged":false}`, `422 {"errors":{"acknowledged":["The acknowledged must be true."]},` + invalid + `}`},
		{"a note that is too long", "PATCH " + newest, `{"acknowledged":true,"note":"` + strings.Repeat("x", 2001) + `"}`, `422 {"errors":{"note":["The note must not be longer than 2000 bytes."]},` + invalid + `}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); !matches(tc.want, got) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	var page struct {
		Meta struct{ Next string }
	}
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(a.ask("GET /iot/alarms?limit=1", "acme", ""), "200 ")), &page))
	if page.Meta.Next == "" {
		t.Fatal("the first page has no next page")
	}
	if got, want := a.ask("GET /iot/alarms?limit=1&cursor="+page.Meta.Next, "acme", ""), `200 {"data":[`+cleared+`],"meta":{"next":""}}`; !matches(want, got) {
		t.Errorf("the page after %q:\n got %s\nwant %s", page.Meta.Next, got, want)
	}
}

func TestTrialOfARule(t *testing.T) {
	a := newAPI(t)
	a.fill() // 21.5 at 12:00
	a.ask("POST /iot/rules", "acme", `{"name":"Warm","on":"reading","when":"values.t > 30",`+mail+`}`)
	a.ingestTemperature("n1-u2", 31, time.Minute)
	a.ingestTemperature("n1-u3", 20, 2*time.Minute)
	alarms := a.ask("GET /iot/alarms", "acme", "")
	deliveryCount := len(a.dispatched)
	frame := func(clock, degrees, matched, state string) string {
		return `{"time":"2026-03-01 ` + clock + `","matched":` + matched + `,"state":` + state + `,"why":"…","readings":{…"t":{"value":` + degrees + `,…},"requests":[…]}`
	}
	inline := `{"rule":{"name":"x","on":"reading","when":"values.t < 25",` + mail + `},"device_id":"id1"`
	for _, tc := range []struct{ name, body, want string }{
		{"a stored rule", `{"rule_id":"rule1","device_id":"id1"}`,
			`200 {"data":[` + frame("12:00:00", "21.5", "false", "null") + `,` + frame("12:01:00", "31", "true", `"raised"`) + `,` + frame("12:02:00", "20", "false", `"cleared"`) + `]}`},
		{"the last frame only", `{"rule_id":"rule1","device_id":"id1","last":1}`, `200 {"data":[` + frame("12:02:00", "20", "false", "null") + `]}`},
		{"a rule in the request", inline + `,"last":3}`,
			`200 {"data":[` + frame("12:00:00", "21.5", "true", `"raised"`) + `,` + frame("12:01:00", "31", "false", `"cleared"`) + `,` + frame("12:02:00", "20", "true", `"raised"`) + `]}`},
		{"an unknown rule", `{"rule_id":"none","device_id":"id1"}`, "404"},
		{"an unknown device", `{"rule_id":"rule1","device_id":"none"}`, "404"},
		{"no rule and no device", `{}`, `422 {"errors":{"device_id":["The device id field is required."],"rule":["Give either a rule or a rule id."]},` + invalid + `}`},
		{"a rule and a rule id", `{"rule_id":"rule1",` + inline[1:] + `}`, `422 {"errors":{"rule":["Give either a rule or a rule id."]},` + invalid + `}`},
		{"a negative number of frames", `{"rule_id":"rule1","device_id":"id1","last":-1}`, `422 {"errors":{"last":["The last must be between 1 and 100."]},` + invalid + `}`},
		{"too many frames", `{"rule_id":"rule1","device_id":"id1","last":101}`, `422 {"errors":{"last":["The last must be between 1 and 100."]},` + invalid + `}`},
		{"a rule that does not compile", `{"rule":{"name":"x","on":"reading","when":"vlaues.t","for":"1m",` + mail + `},"device_id":"id1"}`,
			`422 {"errors":{"rule.when":["line 1, column 1: unknown name vlaues; did you mean values?"]},` + invalid + `}`},
		{"a rule with an invalid duration", `{"rule":{"name":"x","for":"long"},"device_id":"id1"}`,
			`422 {"errors":{"rule.for":["The for must be a duration such as 90s, 10m or 2h30m."]},` + invalid + `}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask("POST /iot/rules/try", "acme", tc.body); !matches(tc.want, got) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	relaytest.Equal(t, "the alarms after a trial", a.ask("GET /iot/alarms", "acme", ""), alarms)
	relaytest.Equal(t, "the number of deliveries after a trial", len(a.dispatched), deliveryCount)
}

// Records of another account are answered like records that do not exist.
func TestRulesAndAlarmsBelongToOneAccount(t *testing.T) {
	a := newAPI(t)
	a.fill()
	a.ask("POST /iot/rules", "acme", `{"name":"Warm","on":"reading","when":"values.t > 30",`+mail+`}`)
	a.ingestTemperature("n1-u2", 31, time.Minute)
	_, id, _ := strings.Cut(a.ask("GET /iot/alarms", "acme", ""), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	for line, want := range map[string]string{
		"GET /iot/rules":           `200 {"data":[],"meta":{"pagination":{"total":0,"count":0,"per_page":500,"current_page":1,"total_pages":1}}}`,
		"GET /iot/rules/rule1":     "404",
		"PATCH /iot/rules/rule1":   "404",
		"DELETE /iot/rules/rule1":  "404",
		"POST /iot/rules/try":      "404",
		"GET /iot/alarms":          `200 {"data":[],"meta":{"next":""}}`,
		"GET /iot/alarms/" + id:    "404",
		"PATCH /iot/alarms/" + id:  "404",
		"GET /iot/alarms?rule_id=": `200 {"data":[],"meta":{"next":""}}`,
	} {
		body := ""
		if strings.HasPrefix(line, "P") {
			body = `{"name":"theirs","rule_id":"rule1","device_id":"id1","acknowledged":true}`
		}
		if got := a.ask(line, "globex", body); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
	for token, want := range map[string]string{"": `401 {"message":"Unauthenticated."}`, "hook": `403 {"message":"This action is unauthorised."}`} {
		if got := a.ask("GET /iot/rules", token, ""); got != want {
			t.Errorf("token %q: got %s, want %s", token, got, want)
		}
	}
}
