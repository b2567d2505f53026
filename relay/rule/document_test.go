package rule

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestADocumentOfARuleIsUnchanged(t *testing.T) {
	for name, body := range map[string]string{
		"required fields": `{"id":"","name":"n","enabled":true,"on":"reading","devices":{},"repeat":"never","ordered":false,"actions":[]}`,
		"conditions":      `{"id":"","name":"n","enabled":false,"on":"reading","devices":{"decoder_id":"d","location_id":"l","ids":["a","b"],"name":"cold*"},"when":"values.t == 8.0","clear":"values.t == 6.0","for":"10m","repeat":"1h30m","ordered":false,"actions":[{"action":"sms","parameters":["447700900123"],"body":"\"x\"","originator":"Cellar"}]}`,
		"silence":         `{"id":"","name":"n","enabled":true,"on":"silent","devices":{},"silent_for":"48h","repeat":"always","ordered":false,"actions":[{"action":"email","parameters":["ops@example.com"]}]}`,
		"batches":         `{"id":"","name":"n","enabled":true,"on":"event","devices":{},"repeat":"never","batch":{"count":100,"every":"1m30s"},"ordered":true,"actions":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var change Change
			relaytest.NoError(t, json.Unmarshal([]byte(body), &change))
			r, err := change.New()
			relaytest.NoError(t, err)
			got, err := json.Marshal(DocumentOf(r))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the document", string(got), body)
		})
	}
}

func TestAChangeKeepsTheOtherFields(t *testing.T) {
	oldRule := Rule{
		ID: "r1", Name: "n", Enabled: true, On: OnReading, Devices: Devices{DecoderID: "d", IDs: []string{"a"}}, When: "true", Clear: "false",
		For: time.Minute, SilentFor: time.Hour, Repeat: Repeat{Always: true}, Batch: Batch{Count: 5, Every: time.Second}, Ordered: true,
		Actions: []Action{{Action: SMS, Parameters: []string{"1"}, Body: "b", Originator: "o"}},
	}
	for name, tc := range map[string]struct {
		body string
		want func(*Rule)
	}{
		"no field":                 {`{}`, func(*Rule) {}},
		"null":                     {`{"name":null,"devices":null,"when":null,"for":null,"batch":null,"actions":null}`, func(*Rule) {}},
		"disabled":                 {`{"enabled":false}`, func(r *Rule) { r.Enabled = false }},
		"other devices":            {`{"devices":{"name":"x*"}}`, func(r *Rule) { r.Devices = Devices{Name: "x*"} }},
		"all devices":              {`{"devices":{}}`, func(r *Rule) { r.Devices = Devices{} }},
		"no conditions":            {`{"when":"","clear":"","for":"","silent_for":""}`, func(r *Rule) { r.When, r.Clear, r.For, r.SilentFor = "", "", 0, 0 }},
		"another action":           {`{"actions":[{"action":"email","parameters":["a@b"]}]}`, func(r *Rule) { r.Actions = []Action{{Action: Email, Parameters: []string{"a@b"}}} }},
		"no batch":                 {`{"batch":{}}`, func(r *Rule) { r.Batch = Batch{} }},
		"a batch of another count": {`{"batch":{"count":2}}`, func(r *Rule) { r.Batch = Batch{Count: 2} }},
		"no repeat":                {`{"repeat":"never"}`, func(r *Rule) { r.Repeat = Repeat{} }},
		"a repeat every hour":      {`{"repeat":"1h"}`, func(r *Rule) { r.Repeat = Repeat{Every: time.Hour} }},
	} {
		t.Run(name, func(t *testing.T) {
			var change Change
			relaytest.NoError(t, json.Unmarshal([]byte(tc.body), &change))
			got, want := oldRule, oldRule
			tc.want(&want)
			relaytest.NoError(t, change.Apply(&got))
			relaytest.Equal(t, "the changed rule", got, want)
		})
	}
}

func TestInvalidDurationsAreRefusedByField(t *testing.T) {
	for body, want := range map[string]string{
		`{"for":"ten minutes"}`:                     "for: The for must be a duration such as 90s, 10m or 2h30m.",
		`{"for":"-1m"}`:                             "for: The for must be a duration such as 90s, 10m or 2h30m.",
		`{"silent_for":"2d"}`:                       "silent_for: The silent for must be a duration such as 90s, 10m or 2h30m.",
		`{"batch":{"every":"1"}}`:                   "batch.every: The batch.every must be a duration such as 90s, 10m or 2h30m.",
		`{"repeat":"sometimes"}`:                    "repeat: The repeat must be never, always or a duration such as 10m.",
		`{"repeat":"0s"}`:                           "repeat: The repeat must be never, always or a duration such as 10m.",
		`{"for":"x","repeat":"y","silent_for":"z"}`: "for: The for must be a duration such as 90s, 10m or 2h30m. repeat: The repeat must be never, always or a duration such as 10m. silent_for: The silent for must be a duration such as 90s, 10m or 2h30m.",
	} {
		var change Change
		relaytest.NoError(t, json.Unmarshal([]byte(body), &change))
		_, err := change.New()
		relaytest.Equal(t, "the problems of "+body, fields(err), want)
		relaytest.Equal(t, "the kind of error of "+body, relay.KindOf(err), relay.KindInvalid)
	}
}

// fields returns the problems of an error, sorted by field.
func fields(err error) string {
	var list []string
	problems := relay.FieldsOf(err)
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		list = append(list, name+": "+strings.Join(problems[name], "; "))
	}
	return strings.Join(list, " ")
}

func TestReadingsHaveAValueOrAText(t *testing.T) {
	got, err := json.Marshal(ValuesOf(map[string]Value{"t": {Value: 0, Units: "°C"}, "door": {IsText: true}, "n": {Value: 1.5, Text: "ignored"}}))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the readings", string(got), `{"door":{"text":"","units":""},"n":{"value":1.5,"units":""},"t":{"value":0,"units":"°C"}}`)
}

// FuzzDuration checks that a formatted duration or repeat is parsed as the same value.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"10m", "1h0m0s", "1h0m5s", "90s", "100h", "0.5ms", "never", "always", "-1s", "1e9s", "9223372036854775807ns", "1d", " 1s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, ok := parseDuration(text); ok {
			reparsed, ok := parseDuration(formatDuration(d))
			relaytest.Equal(t, fmt.Sprintf("the duration %q, formatted as %q and parsed again", text, formatDuration(d)), reparsed, d)
			if !ok || d < 0 {
				t.Errorf("parseDuration(%q) = %s; its format is valid: %v", text, d, ok)
			}
		}
		repeat, err := ParseRepeat(text)
		if err != nil {
			return
		}
		reparsed, err := ParseRepeat(DocumentOf(Rule{Repeat: repeat}).Repeat)
		relaytest.NoError(t, err)
		relaytest.Equal(t, fmt.Sprintf("the repeat %q, formatted and parsed again", text), reparsed, repeat)
	})
}
