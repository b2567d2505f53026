package inventory

import (
	"errors"
	"strings"
	"testing"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/rule"
)

const withRules = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}]
accounts:
  - name: acme
    decoders: [{id: d1, name: Probe, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
    rules:
      - {id: warm, name: Warm, on: reading, devices: {decoder_id: d1}, when: values.temperature_1 > 30, clear: values.temperature_1 < 25, for: 10m, repeat: 1h,
         actions: [{action: email, parameters: [ops@example.com]}, {action: sms, parameters: ["447700900123"], originator: Cellar}]}
      - {id: archive, name: Archive, on: reading, enabled: false, batch: {count: 100, every: 1m}, ordered: true, actions: [{action: http_post, parameters: ["https://example.com/in"]}]}
`

func TestRulesOfAnInventoryAreSaved(t *testing.T) {
	f := newFixture(t)
	f.applied(withRules, document.Mode{})
	list, err := f.rules.Rules(t.Context(), 1)
	must(t, err)
	want := []rule.Rule{
		{
			ID: "warm", Name: "Warm", Enabled: true, On: rule.OnReading, Devices: rule.Devices{DecoderID: "d1"}, When: "values.temperature_1 > 30", Clear: "values.temperature_1 < 25",
			For: 10 * time.Minute, Repeat: rule.Repeat{Every: time.Hour},
			Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"ops@example.com"}}, {Action: rule.SMS, Parameters: []string{"447700900123"}, Originator: "Cellar"}},
		},
		{ID: "archive", Name: "Archive", On: rule.OnReading, Batch: rule.Batch{Count: 100, Every: time.Minute}, Ordered: true, Actions: []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/in"}}}},
	}
	if len(list) != 2 || !sameRule(list[0], want[0]) || !sameRule(list[1], want[1]) {
		t.Errorf("got %+v", list)
	}
	f.applied(withRules, document.Mode{})
	again, err := f.rules.Rule(t.Context(), 1, "warm")
	must(t, err)
	if !again.UpdatedAt.Equal(list[0].UpdatedAt) {
		t.Error("the same document saved the rule again")
	}
}

func TestRulesFollowTheDocumentUntilRESTChangesThem(t *testing.T) {
	f := newFixture(t)
	f.applied(withRules, document.Mode{})
	renamed := strings.NewReplacer("name: Warm", "name: Hot", "name: Archive", "name: Copy").Replace(withRules)
	byREST := func(r *rule.Rule) error { r.Enabled = !r.Enabled; return nil }
	names := func() string {
		t.Helper()
		list, err := f.rules.Rules(t.Context(), 1)
		must(t, err)
		out := ""
		for _, r := range list {
			out += r.Name + " "
		}
		return out
	}
	_, _, err := f.rules.Change(t.Context(), 1, "archive", byREST)
	must(t, err)
	f.applied(renamed, document.Mode{})
	if got := names(); got != "Hot Archive " {
		t.Errorf("after a document with other names: %s", got)
	}
	must(t, f.rules.Delete(t.Context(), 1, "warm"))
	f.applied(renamed, document.Mode{})
	if got := names(); got != "Archive " {
		t.Errorf("after REST deleted one: %s", got)
	}
	f.applied(withRules, document.Mode{})
	if got := names(); got != "Archive Warm " {
		t.Errorf("after the document changed the deleted one: %s", got)
	}
	must(t, f.rules.Delete(t.Context(), 1, "warm"))
	f.applied(renamed, document.Mode{Reset: []string{"rules"}})
	if got := names(); got != "Copy Hot " {
		t.Errorf("after a reset: %s", got)
	}
}

func TestRulesAreRefusedByTheirPath(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct{ was, is, path, says string }{
		"a condition":           {"values.temperature_1 > 30", "values.temperature_1 >", "accounts[0].rules[0].when", "line 1, column 22"},
		"a second condition":    {"values.temperature_1 < 25", `"hour ==\n  colour"`, "accounts[0].rules[0].clear", "line 2, column 3: unknown name colour"},
		"a private endpoint":    {"https://example.com/in", "https://10.0.0.1/in", "accounts[0].rules[1].actions[0].parameters[0]", "private"},
		"a batch with a when":   {"batch: {count", "when: hour == 7, batch: {count", "accounts[0].rules[1].batch", "…"},
		"a rule without action": {`[{action: http_post, parameters: ["https://example.com/in"]}]`, "[]", "accounts[0].rules[1].actions", "between 1 and"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Apply(t.Context(), []byte(strings.Replace(withRules, tc.was, tc.is, 1)), document.Mode{})
			mistakes, ok := errors.AsType[document.Mistakes](err)
			if !ok || !strings.HasPrefix(mistakes[0].Path, tc.path) || tc.says != "…" && !strings.Contains(mistakes[0].Text, tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	if list, err := f.rules.Rules(t.Context(), 1); err != nil || len(list) > 0 {
		t.Errorf("%v: %+v", err, list)
	}
}

func TestAPruneRemovesRules(t *testing.T) {
	f := newFixture(t)
	f.applied(withRules, document.Mode{})
	_, _, err := f.rules.Create(t.Context(), 1, rule.Rule{ID: "by-rest", Name: "n", On: rule.OnReading, Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"ops@example.com"}}}})
	must(t, err)
	less := withRules[:strings.Index(withRules, "      - {id: archive")]
	if done := f.applied(less, document.Mode{}); len(done.Removed) > 0 {
		t.Errorf("without a prune: %+v", done)
	}
	if done := f.applied(less, document.Mode{Prune: true, AllowRemovals: 100}); len(done.Removed) != 1 || done.Removed[0] != "account acme: rule archive" {
		t.Errorf("%+v", done)
	}
	if _, err := f.rules.Rule(t.Context(), 1, "archive"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("archive: %v", err)
	}
	if _, err := f.rules.Rule(t.Context(), 1, "by-rest"); err != nil {
		t.Errorf("a rule of REST: %v", err)
	}
	if strings.Contains(f.shown(), "archive") {
		t.Errorf("it is declared still: %s", f.shown())
	}
}
