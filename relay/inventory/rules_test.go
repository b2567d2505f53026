package inventory

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
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
	f.apply(withRules, document.Mode{})
	list, err := f.rules.Rules(t.Context(), 1)
	relaytest.NoError(t, err)
	want := []rule.Rule{
		{
			ID: "warm", Name: "Warm", Enabled: true, On: rule.OnReading, Devices: rule.Devices{DecoderID: "d1"}, When: "values.temperature_1 > 30", Clear: "values.temperature_1 < 25",
			For: 10 * time.Minute, Repeat: rule.Repeat{Every: time.Hour},
			Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"ops@example.com"}}, {Action: rule.SMS, Parameters: []string{"447700900123"}, Originator: "Cellar"}},
		},
		{ID: "archive", Name: "Archive", On: rule.OnReading, Batch: rule.Batch{Count: 100, Every: time.Minute}, Ordered: true, Actions: []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/in"}}}},
	}
	documents := func(list []rule.Rule) (result []rule.Document) {
		for _, r := range list {
			result = append(result, rule.DocumentOf(r))
		}
		return result
	}
	relaytest.Equal(t, "the rules", documents(list), documents(want))
	f.apply(withRules, document.Mode{})
	reloaded, err := f.rules.Rule(t.Context(), 1, "warm")
	relaytest.NoError(t, err)
	if !reloaded.UpdatedAt.Equal(list[0].UpdatedAt) {
		t.Error("an unchanged document saved the rule again")
	}
}

// A rule may name a decoder of an earlier document or a decoder that was created over the REST API.
func TestARuleNeedsAnExistingDecoder(t *testing.T) {
	f := newFixture(t)
	f.apply(withRules, document.Mode{})
	relaytest.NoError(t, f.db.Devices.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "by-rest", Name: "R", Type: iot.Other, Codec: "json"}))
	documentWith := func(decoder string) string {
		return `accounts: [{name: acme, rules: [{id: cold, name: Cold, on: reading, devices: {decoder_id: ` + decoder + `}, actions: [{action: email, parameters: [a@example.com]}]}]}]`
	}
	f.apply(documentWith("d1"), document.Mode{})
	f.apply(documentWith("by-rest"), document.Mode{})
	for _, m := range []document.Mode{{}, {DryRun: true}} {
		mistakes := f.applyInvalid(t, documentWith("d2"), m)
		relaytest.Equal(t, "the mistakes", mistakes.Error(),
			`accounts[0].rules[0].devices.decoder_id: expected the id of a decoder of this account (did you mean "d1"?), got "d2"`)
	}
	mistakes := f.applyInvalid(t, documentWith("d1"), document.Mode{Prune: true})
	relaytest.Equal(t, "the mistakes of a prune of the decoder", mistakes.Error(),
		`accounts[0].rules[0].devices.decoder_id: expected the id of a decoder of this account, got "d1"`)
}

func TestRulesFollowTheDocumentUntilRESTChangesThem(t *testing.T) {
	f := newFixture(t)
	f.apply(withRules, document.Mode{})
	renamed := strings.NewReplacer("name: Warm", "name: Hot", "name: Archive", "name: Copy").Replace(withRules)
	byREST := func(r *rule.Rule) error { r.Enabled = !r.Enabled; return nil }
	wantNames := func(step string, want ...string) {
		t.Helper()
		var got []string
		for _, r := range relaytest.Must(f.rules.Rules(t.Context(), 1))(t) {
			got = append(got, r.Name)
		}
		relaytest.Equal(t, "the names of the rules after "+step, got, want)
	}
	_, _, err := f.rules.Change(t.Context(), 1, "archive", byREST)
	relaytest.NoError(t, err)
	f.apply(renamed, document.Mode{})
	wantNames("a document with other names", "Hot", "Archive")
	relaytest.NoError(t, f.rules.Delete(t.Context(), 1, "warm"))
	f.apply(renamed, document.Mode{})
	wantNames("a deletion over REST", "Archive")
	f.apply(withRules, document.Mode{})
	wantNames("a document that changes the deleted rule", "Archive", "Warm")
	relaytest.NoError(t, f.rules.Delete(t.Context(), 1, "warm"))
	f.apply(renamed, document.Mode{Reset: []string{"rules"}})
	wantNames("a reset", "Copy", "Hot")
}

func TestRulesAreRefusedByTheirPath(t *testing.T) {
	f := newFixture(t)
	for name, tc := range map[string]struct{ oldText, newText, path, want string }{
		"invalid condition":       {"values.temperature_1 > 30", "values.temperature_1 >", "accounts[0].rules[0].when", "line 1, column 22"},
		"invalid clear condition": {"values.temperature_1 < 25", `"hour ==\n  colour"`, "accounts[0].rules[0].clear", "line 2, column 3: unknown name colour"},
		"private endpoint":        {"https://example.com/in", "https://10.0.0.1/in", "accounts[0].rules[1].actions[0].parameters[0]", "private"},
		"batch with a condition":  {"batch: {count", "when: hour == 7, batch: {count", "accounts[0].rules[1].batch", ""},
		"rule without actions":    {`[{action: http_post, parameters: ["https://example.com/in"]}]`, "[]", "accounts[0].rules[1].actions", "between 1 and"},
	} {
		t.Run(name, func(t *testing.T) {
			mistakes := f.applyInvalid(t, strings.Replace(withRules, tc.oldText, tc.newText, 1), document.Mode{})
			if !strings.HasPrefix(mistakes[0].Path, tc.path) || !strings.Contains(mistakes[0].Text, tc.want) {
				t.Errorf("mistake = %+v, want %q at %s", mistakes[0], tc.want, tc.path)
			}
		})
	}
	relaytest.Equal(t, "the number of rules", len(relaytest.Must(f.rules.Rules(t.Context(), 1))(t)), 0)
}

func TestAPruneRemovesRules(t *testing.T) {
	f := newFixture(t)
	f.apply(withRules, document.Mode{})
	_, _, err := f.rules.Create(t.Context(), 1, rule.Rule{ID: "by-rest", Name: "n", On: rule.OnReading, Actions: []rule.Action{{Action: rule.Email, Parameters: []string{"ops@example.com"}}}})
	relaytest.NoError(t, err)
	withoutArchive := withRules[:strings.Index(withRules, "      - {id: archive")]
	relaytest.Equal(t, "the records removed without a prune", f.apply(withoutArchive, document.Mode{}).Removed, []string{})
	applied := f.apply(withoutArchive, document.Mode{Prune: true, AllowRemovals: 100})
	relaytest.Equal(t, "the records removed by a prune", applied.Removed, []string{"account acme: rule archive"})
	_, err = f.rules.Rule(t.Context(), 1, "archive")
	relaytest.Equal(t, "the kind of error for the pruned rule", relay.KindOf(err), relay.KindNotFound)
	_, err = f.rules.Rule(t.Context(), 1, "by-rest")
	relaytest.NoError(t, err)
	if strings.Contains(f.declaredJSON(), "archive") {
		t.Errorf("the pruned rule is still declared: %s", f.declaredJSON())
	}
}

// FuzzParse checks that Parse returns Mistakes or a document that equals its encoded and parsed
// form.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{withRules, acme, siteB, "accounts: [{name: a, rules: [{id: r, name: R, on: event, devices: {decoder_id: none}}]}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data, document.Options{})
		if err != nil {
			if _, ok := errors.AsType[document.Mistakes](err); !ok {
				t.Fatalf("error %v is not of type Mistakes", err)
			}
			return
		}
		encoded := relaytest.Must(json.Marshal(*d))(t)
		relaytest.Equal(t, "the document after encoding", *relaytest.Must(Parse(encoded, document.Options{}))(t), *d)
	})
}
