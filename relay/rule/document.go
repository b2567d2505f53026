package rule

import (
	"context"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// Document is a Rule as the API represents it. Durations are texts such as "10m".
type Document struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Enabled   bool          `json:"enabled"`
	On        Trigger       `json:"on"`
	Devices   Devices       `json:"devices"`
	When      string        `json:"when,omitempty"`
	Clear     string        `json:"clear,omitempty"`
	For       string        `json:"for,omitempty"`
	SilentFor string        `json:"silent_for,omitempty"`
	Repeat    string        `json:"repeat"`
	Batch     BatchDocument `json:"batch,omitzero"`
	Ordered   bool          `json:"ordered"`
	Actions   []Action      `json:"actions"`
}

// BatchDocument is a Batch as the API represents it.
type BatchDocument struct {
	Count int    `json:"count,omitempty"`
	Every string `json:"every,omitempty"`
}

// The values of a repeat that are not durations.
const (
	repeatNever  = "never"
	repeatAlways = "always"
)

// DocumentOf returns the document of a rule.
func DocumentOf(r Rule) Document {
	document := Document{
		ID: r.ID, Name: r.Name, Enabled: r.Enabled, On: r.On, Devices: r.Devices, When: r.When, Clear: r.Clear,
		For: formatDuration(r.For), SilentFor: formatDuration(r.SilentFor), Repeat: repeatNever,
		Batch: BatchDocument{Count: r.Batch.Count, Every: formatDuration(r.Batch.Every)}, Ordered: r.Ordered, Actions: r.Actions,
	}
	switch {
	case r.Repeat.Always:
		document.Repeat = repeatAlways
	case r.Repeat.Every != 0:
		document.Repeat = formatDuration(r.Repeat.Every)
	}
	if document.Actions == nil {
		document.Actions = []Action{}
	}
	return document
}

// Change has the fields of a request to change a rule. A nil field leaves the rule's field
// unchanged. An empty text removes a condition or a duration, and an empty object removes a selection
// or a batch.
type Change struct {
	Name      *string        `json:"name"`
	Enabled   *bool          `json:"enabled"`
	On        *Trigger       `json:"on"`
	Devices   *Devices       `json:"devices"`
	When      *string        `json:"when"`
	Clear     *string        `json:"clear"`
	For       *string        `json:"for"`
	SilentFor *string        `json:"silent_for"`
	Repeat    *string        `json:"repeat"`
	Batch     *BatchDocument `json:"batch"`
	Ordered   *bool          `json:"ordered"`
	Actions   *[]Action      `json:"actions"`
}

// Apply sets the fields of the change in a rule. It returns relay.KindInvalid if a duration or the
// repeat is invalid. Compile checks the other fields.
func (c Change) Apply(r *Rule) error {
	p := relay.Problems{}
	relay.Assign(&r.Name, c.Name)
	relay.Assign(&r.Enabled, c.Enabled)
	relay.Assign(&r.On, c.On)
	relay.Assign(&r.Devices, c.Devices)
	relay.Assign(&r.When, c.When)
	relay.Assign(&r.Clear, c.Clear)
	relay.Assign(&r.Ordered, c.Ordered)
	relay.Assign(&r.Actions, c.Actions)
	setDuration(p, "for", &r.For, c.For)
	setDuration(p, "silent_for", &r.SilentFor, c.SilentFor)
	if c.Repeat != nil {
		var err error
		r.Repeat, err = ParseRepeat(*c.Repeat)
		p.AddAll("", relay.FieldsOf(err))
	}
	if c.Batch != nil {
		r.Batch.Count = c.Batch.Count
		setDuration(p, "batch.every", &r.Batch.Every, &c.Batch.Every)
	}
	return p.Err()
}

// New returns the rule that the change creates. It is enabled by default.
func (c Change) New() (Rule, error) {
	r := Rule{Enabled: true}
	err := c.Apply(&r)
	return r, err
}

func setDuration(p relay.Problems, name string, field *time.Duration, text *string) {
	if text == nil {
		return
	}
	d, ok := parseDuration(*text)
	if !ok {
		p.AddNamed(name, "The %s must be a duration such as 90s, 10m or 2h30m.")
		return
	}
	*field = d
}

// parseDuration parses a duration in Go's format; an empty text means 0.
func parseDuration(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// ParseRepeat parses a repeat: never, always or a positive duration. An empty text means never. It
// returns relay.KindInvalid with the field repeat for other texts.
func ParseRepeat(text string) (Repeat, error) {
	p := relay.Problems{}
	switch text {
	case "", repeatNever:
		return Repeat{}, nil
	case repeatAlways:
		return Repeat{Always: true}, nil
	}
	d, ok := parseDuration(text)
	if !ok || d == 0 {
		p.Add("repeat", "The repeat must be never, always or a duration such as 10m.")
	}
	return Repeat{Every: d}, p.Err()
}

// formatDuration formats a duration without trailing units that are zero: 10m, not 10m0s. It returns an
// empty text for 0.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// FailuresDocument is a Failures as the API represents it. LastAt is nil without failures.
type FailuresDocument struct {
	Count  int64   `json:"count"`
	LastAt *string `json:"last_at"`
	Last   string  `json:"last"`
}

// FailuresDocumentOf converts failures for the API. layout is the format of the time, in UTC.
func FailuresDocumentOf(f Failures, layout string) FailuresDocument {
	return FailuresDocument{f.Count, formatTimeOrNil(f.LastAt, layout), f.Last}
}

// AlarmDocument is an Alarm without its IDs, as the API represents it. ClearedAt, AcknowledgedAt and
// MutedUntil may be nil.
type AlarmDocument struct {
	State          State                    `json:"state"`
	RaisedAt       string                   `json:"raised_at"`
	ClearedAt      *string                  `json:"cleared_at"`
	Readings       map[string]ValueDocument `json:"readings"`
	AcknowledgedAt *string                  `json:"acknowledged_at"`
	AcknowledgedBy string                   `json:"acknowledged_by"`
	Note           string                   `json:"note"`
	MutedUntil     *string                  `json:"muted_until"`
}

// AlarmDocumentOf converts an alarm for the API. layout is the format of times, in UTC.
func AlarmDocumentOf(a Alarm, layout string) AlarmDocument {
	return AlarmDocument{
		State: a.State, RaisedAt: a.RaisedAt.UTC().Format(layout), ClearedAt: formatTimeOrNil(a.ClearedAt, layout), Readings: ValuesOf(a.Readings),
		AcknowledgedAt: formatTimeOrNil(a.AcknowledgedAt, layout), AcknowledgedBy: a.AcknowledgedBy, Note: a.Note,
		MutedUntil: formatTimeOrNil(a.MutedUntil, layout),
	}
}

// MuteDocument is a Mute as the API represents it.
type MuteDocument struct {
	RuleID   string `json:"rule_id"`   // empty for every rule
	DeviceID string `json:"device_id"` // empty for every device
	Until    string `json:"until"`
	MutedBy  string `json:"muted_by"`
}

// MuteDocumentOf converts a mute for the API. layout is the format of the time, in UTC.
func MuteDocumentOf(m Mute, layout string) MuteDocument {
	return MuteDocument{m.RuleID, m.DeviceID, m.Until.UTC().Format(layout), m.By}
}

func formatTimeOrNil(t time.Time, layout string) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Format(layout))
}

// TrialDocument is a TrialResult as the API represents it. State is nil if the rule would not fire.
type TrialDocument struct {
	Time     string                   `json:"time"`
	Matched  bool                     `json:"matched"`
	State    *State                   `json:"state"`
	Reason   string                   `json:"why"`
	Readings map[string]ValueDocument `json:"readings"`
	Requests []outbox.Outgoing        `json:"requests"`
}

// TrialDocumentOf converts a result for the API. layout is the format of the time, in UTC.
func TrialDocumentOf(ctx context.Context, r TrialResult, layout string, preview outbox.Previewer) (TrialDocument, error) {
	requests, err := outbox.Preview(ctx, r.Requests, preview)
	document := TrialDocument{
		Time: r.Time.UTC().Format(layout), Matched: r.Matched, Reason: strings.ToValidUTF8(r.Reason, "\uFFFD"),
		Readings: ValuesOf(r.Readings), Requests: requests,
	}
	if r.State != "" {
		document.State = &r.State
	}
	return document, err
}

// ValueDocument is a Value as the API represents it: either a number or a text.
type ValueDocument struct {
	Value *float64 `json:"value,omitempty"`
	Text  *string  `json:"text,omitempty"`
	Units string   `json:"units"`
}

// ValuesOf converts readings for the API.
func ValuesOf(readings map[string]Value) map[string]ValueDocument {
	values := make(map[string]ValueDocument, len(readings))
	for key, v := range readings {
		rendered := ValueDocument{Units: v.Units}
		if v.IsText {
			rendered.Text = &v.Text
		} else {
			rendered.Value = &v.Value
		}
		values[key] = rendered
	}
	return values
}
