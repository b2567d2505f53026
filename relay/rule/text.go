package rule

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/template"
)

const (
	// textTime is the format of times in mails.
	textTime   = "2006-01-02 15:04:05 MST"
	maxSubject = 200       // characters of the subject of a mail
	maxText    = 256 << 10 // bytes of the text of a mail
	maxInSMS   = 3         // readings in an SMS
)

type note struct{ subject, text string }

// note returns the subject and the text of an occurrence: the usual texts, unless the action has a
// body. If the body's expression fails, it returns the usual texts with the error.
//
// The result of the expression is a text, or an object with subject and text. Other results are
// formatted as JSON. Placeholders are replaced in both.
func (a *action) note(o *Occurrence, named []string, s *Settings) (note, error) {
	usual := note{o.subjectLine(), o.text(s.Zone)}
	if a.declared.Action == SMS {
		usual.text = o.short(named, s.Zone)
	}
	if a.body == nil {
		return usual, nil
	}
	result, err := a.bodyJSON(o, s)
	if err != nil {
		return usual, err
	}
	n := noteOf(result)
	if n.subject == "" {
		n.subject = usual.subject
	}
	if n.text == "" {
		n.text = usual.text
	}
	return note{o.expand(n.subject, s.Zone), o.expand(n.text, s.Zone)}, nil
}

// noteOf converts the result of an expression. The subject or the text may be empty.
func noteOf(result json.RawMessage) (n note) {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return note{text: text}
	}
	var fields map[string]any
	if json.Unmarshal(result, &fields) == nil {
		subject, hasSubject := fields["subject"].(string)
		text, hasText := fields["text"].(string)
		if hasSubject || hasText {
			return note{subject, text}
		}
	}
	var indented bytes.Buffer
	if json.Indent(&indented, result, "", "  ") != nil {
		return note{text: string(result)}
	}
	return note{text: indented.String()}
}

func (o *Occurrence) subjectLine() string {
	return fmt.Sprintf("%s: %s %s", o.Rule.Name, o.deviceName(), o.State)
}

// text returns the usual text of a mail.
func (o *Occurrence) text(zone *time.Location) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name+":", value)
		}
	}
	line("Rule", o.Rule.Name)
	line("State", string(o.State))
	line("Device", o.deviceName())
	line("Identifier", o.Device.Identifier)
	line("Time", o.Time.In(zone).Format(textTime))
	line("Last heard", o.lastHeard(textTime, zone))
	if t, ok := o.Event["type"].(string); ok {
		line("Event", t)
	}
	line("Alarm", o.AlarmID)
	list := func(title string, readings map[string]Value) {
		if len(readings) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", title)
		}
		for _, key := range slices.Sorted(maps.Keys(readings)) {
			v := readings[key]
			fmt.Fprintf(&b, "  %s: %s\n", key, strings.TrimSpace(v.String()+" "+v.Units))
		}
	}
	list("Readings", o.Readings)
	list("Readings before", o.Previous)
	return b.String()
}

// short returns the usual text of an SMS, with the readings of the keys in named, else the first
// readings. It has no units, because many units are not in the GSM alphabet and would double
// the cost.
func (o *Occurrence) short(named []string, zone *time.Location) string {
	keys := slices.DeleteFunc(slices.Clone(named), func(key string) bool { _, ok := o.Readings[key]; return !ok })
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(o.Readings))
	}
	var readings []string
	for _, key := range keys[:min(len(keys), maxInSMS)] {
		readings = append(readings, key+" "+o.Readings[key].String())
	}
	text := o.subjectLine() + " at " + o.Time.In(zone).Format("2006-01-02 15:04")
	if len(readings) > 0 {
		text += ", " + strings.Join(readings, ", ")
	}
	if heard := o.lastHeard("2006-01-02 15:04", zone); heard != "" {
		text += ", last heard " + heard
	}
	return text
}

// lastHeard returns the time of a silent device's last frame; empty if the device is not silent.
func (o *Occurrence) lastHeard(layout string, zone *time.Location) string {
	if o.Rule.On != OnSilent || o.State != Raised || o.Device.LastSeen.IsZero() {
		return ""
	}
	return o.Device.LastSeen.In(zone).Format(layout)
}

// mail returns the subject and the text of one mail about all occurrences.
func (a *action) mail(occurrences []Occurrence, named []string, s *Settings) (note, error) {
	n, failed := a.note(&occurrences[0], named, s)
	if len(occurrences) == 1 {
		return n.clipped(), failed
	}
	texts := []string{strings.TrimRight(n.text, "\n")}
	for i := range occurrences[1:] {
		n, err := a.note(&occurrences[i+1], named, s)
		if failed == nil {
			failed = err
		}
		texts = append(texts, strings.TrimRight(n.text, "\n"))
	}
	if a.body == nil || failed != nil {
		n.subject = fmt.Sprintf("%s: %d frames", occurrences[0].Rule.Name, len(occurrences))
	}
	n.text = strings.Join(texts, "\n\n") + "\n"
	return n.clipped(), failed
}

func (n note) clipped() note {
	if r := []rune(n.subject); len(r) > maxSubject {
		n.subject = string(r[:maxSubject]) + "…"
	}
	if len(n.text) > maxText {
		n.text = strings.ToValidUTF8(n.text[:maxText], "") + "\n…\n"
	}
	return n
}

// keyPrefix begins the placeholders of readings: %key:temperature.
const keyPrefix = "key:"

// placeholders returns the names that URLs and texts may contain after a percent sign.
func placeholders() []string {
	return []string{"rule", "state", "device", "identifier", "time", keyPrefix}
}

// placeholder returns the value of a placeholder; empty for a missing reading.
func (o *Occurrence) placeholder(name string, zone *time.Location) string {
	switch name {
	case "rule":
		return o.Rule.Name
	case "state":
		return string(o.State)
	case "device":
		return o.deviceName()
	case "identifier":
		return o.Device.Identifier
	case "time":
		return o.Time.In(zone).Format(time.RFC3339)
	}
	v, ok := o.Readings[strings.TrimPrefix(name, keyPrefix)]
	if !ok {
		return ""
	}
	return v.String()
}

func (o *Occurrence) expand(text string, zone *time.Location) string {
	return template.ExpandText(text, placeholders(), func(name string) string { return o.placeholder(name, zone) })
}

func (o *Occurrence) deviceName() string {
	return cmp.Or(o.Device.Name, o.Device.Identifier, o.Device.ID)
}

// String returns the reading without its units.
func (v Value) String() string {
	if v.IsText {
		return v.Text
	}
	if math.Abs(v.Value) >= 1e15 {
		return strconv.FormatFloat(v.Value, 'g', -1, 64)
	}
	return strconv.FormatFloat(v.Value, 'f', -1, 64)
}

func (o *Occurrence) subject(zone *time.Location) condition.Subject {
	s := subjectOf(&o.Device, o.Device.LastSeen, o.Time, zone, o.Radio)
	s.Values, s.Previous, s.Event = plainValues(o.Readings), plainValues(o.Previous), o.Event
	return s
}

func plainValues(readings map[string]Value) map[string]any {
	values := make(map[string]any, len(readings))
	for key, v := range readings {
		if v.IsText {
			values[key] = v.Text
		} else {
			values[key] = v.Value
		}
	}
	return values
}
