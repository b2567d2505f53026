package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

func TestRulesAndAlarmsAreListed(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply(`{"accounts":[{"name":"acme","rules":[
		{"id":"warm","name":"Warm","on":"reading","when":"values.t > 30","repeat":"1h","actions":[{"action":"email","parameters":["ops@example.com"]}]},
		{"id":"wet","name":"Wet","enabled":false,"on":"silent","silent_for":"2h","actions":[{"action":"email","parameters":["ops@example.com"]}]}]},{"name":"globex"}]}`, "")
	alarm := rule.Alarm{ID: "a1", RuleID: "warm", DeviceID: "d1", State: rule.Raised, RaisedAt: o.now.Add(-time.Hour), Readings: map[string]rule.Value{"t": {Value: 31, Units: "°C"}}}
	pair := rule.Pair{RuleID: "warm", DeviceID: "d1"}
	_, err := o.db.Rules.SaveDecision(t.Context(), 1, []rule.Pair{pair}, o.now, func([]rule.PairState) (rule.Decision, error) {
		return rule.Decision{States: []rule.PairState{{Pair: pair, AlarmID: "a1", RaisedAt: alarm.RaisedAt}}, Raised: []rule.Alarm{alarm}}, nil
	})
	relaytest.NoError(t, err)
	ruleText := func(id, fields string) string {
		return `{"id":"` + id + `",` + fields + `,"devices":{},%s"ordered":false,"actions":[{"action":"email","parameters":["ops@example.com"]}],"account":1,` +
			`"failures":{"count":0,"last_at":null,"last":""},"created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z"}`
	}
	warm := fmt.Sprintf(ruleText("warm", `"name":"Warm","enabled":true,"on":"reading"`), `"when":"values.t > 30","repeat":"1h",`)
	wet := fmt.Sprintf(ruleText("wet", `"name":"Wet","enabled":false,"on":"silent"`), `"silent_for":"2h","repeat":"never",`)
	raised := `{"id":"a1","account":1,"rule_id":"warm","device_id":"d1","device_name":"","state":"raised","raised_at":"2026-03-01T11:00:00Z","cleared_at":null,"readings":{"t":{"value":31,"units":"°C"}},"acknowledged_at":`
	invalid := func(fields string) string {
		return `422 {"errors":{` + fields + `},"message":"The given data was invalid."}`
	}
	for _, tc := range []struct{ name, line, body, want string }{
		{"rules", "GET /admin/rules?account=1", "", `200 {"data":[` + warm + `,` + wet + `],"meta":{"next":""}}`},
		{"a page of rules", "GET /admin/rules?account=1&limit=1", "", `200 {"data":[` + warm + `],"meta":{"next":"MSAxNzcyMzY2NDAwMDAwMDAwMDAwIHdhcm0"}}`},
		{"the next page", "GET /admin/rules?account=1&limit=1&cursor=MSAxNzcyMzY2NDAwMDAwMDAwMDAwIHdhcm0", "", `200 {"data":[` + wet + `],"meta":{"next":""}}`},
		{"a cursor after the last rule", "GET /admin/rules?account=1&cursor=MSAxNzcyMzY2NDAwMDAwMDAwMDAwIHdldA", "", `200 {"data":[],"meta":{"next":""}}`},
		{"rules of another account", "GET /admin/rules?account=2", "", `200 {"data":[],"meta":{"next":""}}`},
		{"rules of all accounts", "GET /admin/rules", "", `200 {"data":[` + warm + `,` + wet + `],"meta":{"next":""}}`},
		{"a cursor without an id", "GET /admin/rules?cursor=MSAwIA", "", `200 {"data":[` + warm + `,` + wet + `],"meta":{"next":""}}`},
		{"a cursor of another list", "GET /admin/rules?cursor=1", "", invalid(`"cursor":["This is not a cursor of this list."]`)},
		{"alarms of all accounts", "GET /admin/alarms", "", `200 {"data":[` + raised + `null,"acknowledged_by":"","note":"","muted_until":null}],"meta":{"next":""}}`},
		{"rules of an unknown account", "GET /admin/rules?account=9", "", `404 {"message":"Not found."}`},
		{"alarms", "GET /admin/alarms?account=1&state=raised", "", `200 {"data":[` + raised + `null,"acknowledged_by":"","note":"","muted_until":null}],"meta":{"next":""}}`},
		{"alarms of another account", "GET /admin/alarms?account=2", "", `200 {"data":[],"meta":{"next":""}}`},
		{"alarms in an unknown state", "GET /admin/alarms?account=1&state=loud", "", invalid(`"state":["The state must be raised or cleared, not \"loud\"."]`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := o.call(tc.line, tc.body); strings.TrimSpace(got) != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}
