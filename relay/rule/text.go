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
	// mailTimeLayout is the format of times in mails.
	mailTimeLayout = "2006-01-02 15:04:05 MST"
	maxSubject     = 200       // characters of the subject of a mail
	maxText        = 256 << 10 // bytes of the text of a mail
	maxSMSReadings = 3         // number of readings in an SMS
)

type message struct{ subject, text string }

// compose returns the message about an occurrence: the default texts, unless the action has a body. If
// the expression of the body fails, compose returns the default texts with the error.
//
// The result of the expression is a text, or an object with subject and text. Other results are
// formatted as JSON. Placeholders are replaced in the subject and in the text.
func (a *action) compose(o *Occurrence, conditionKeys []string, s *Settings) (message, error) {
	defaultMessage := message{o.subjectLine(), o.mailText(s.Zone)}
	if a.declared.Action == SMS {
		defaultMessage.text = o.smsText(conditionKeys, s.Zone)
	}
	if a.body == nil {
		return defaultMessage, nil
	}
	result, err := a.bodyJSON(o, s)
	if err != nil {
		return defaultMessage, err
	}
	composed := parseMessage(result)
	if composed.subject == "" {
		composed.subject = defaultMessage.subject
	}
	if composed.text == "" {
		composed.text = defaultMessage.text
	}
	return message{o.expand(composed.subject, s.Zone), o.expand(composed.text, s.Zone)}, nil
}

// parseMessage converts the result of an expression. The subject or the text may be empty.
func parseMessage(result json.RawMessage) message {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return message{text: text}
	}
	var fields map[string]any
	if json.Unmarshal(result, &fields) == nil {
		subject, hasSubject := fields["subject"].(string)
		text, hasText := fields["text"].(string)
		if hasSubject || hasText {
			return message{subject, text}
		}
	}
	var indented bytes.Buffer
	if json.Indent(&indented, result, "", "  ") != nil {
		return message{text: string(result)}
	}
	return message{text: indented.String()}
}

func (o *Occurrence) subjectLine() string {
	return fmt.Sprintf("%s: %s %s", o.Rule.Name, o.deviceName(), o.State)
}

// mailText returns the default text of a mail.
func (o *Occurrence) mailText(zone *time.Location) string {
	var b strings.Builder
	writeLine := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name+":", value)
		}
	}
	writeLine("Rule", o.Rule.Name)
	writeLine("State", string(o.State))
	writeLine("Device", o.deviceName())
	writeLine("Identifier", o.Device.Identifier)
	writeLine("Time", o.Time.In(zone).Format(mailTimeLayout))
	writeLine("Last heard", o.lastHeard(mailTimeLayout, zone))
	if t, ok := o.Event["type"].(string); ok {
		writeLine("Event", t)
	}
	writeLine("Alarm", o.AlarmID)
	writeReadings := func(title string, readings map[string]Value) {
		if len(readings) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", title)
		}
		for _, key := range slices.Sorted(maps.Keys(readings)) {
			v := readings[key]
			fmt.Fprintf(&b, "  %s: %s\n", key, strings.TrimSpace(v.String()+" "+v.Units))
		}
	}
	writeReadings("Readings", o.Readings)
	writeReadings("Readings before", o.Previous)
	return b.String()
}

// smsText returns the default text of an SMS, with the readings of conditionKeys, else the first
// readings. The text has no units, because many units are not in the GSM alphabet and would double
// the cost.
func (o *Occurrence) smsText(conditionKeys []string, zone *time.Location) string {
	keys := slices.DeleteFunc(slices.Clone(conditionKeys), func(key string) bool { _, ok := o.Readings[key]; return !ok })
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(o.Readings))
	}
	var readings []string
	for _, key := range keys[:min(len(keys), maxSMSReadings)] {
		readings = append(readings, key+" "+o.Readings[key].String())
	}
	text := o.subjectLine() + " at " + o.Time.In(zone).Format("2006-01-02 15:04")
	if len(readings) > 0 {
		text += ", " + strings.Join(readings, ", ")
	}
	if lastHeard := o.lastHeard("2006-01-02 15:04", zone); lastHeard != "" {
		text += ", last heard " + lastHeard
	}
	return text
}

// lastHeard returns the time of a silent device's last frame, or "" if the device is not silent.
func (o *Occurrence) lastHeard(layout string, zone *time.Location) string {
	if o.Rule.On != OnSilent || o.State != Raised || o.Device.LastSeen.IsZero() {
		return ""
	}
	return o.Device.LastSeen.In(zone).Format(layout)
}

// mail returns the subject and the text of one mail about all occurrences.
func (a *action) mail(occurrences []Occurrence, conditionKeys []string, s *Settings) (message, error) {
	joined, firstErr := a.compose(&occurrences[0], conditionKeys, s)
	if len(occurrences) == 1 {
		return joined.clip(), firstErr
	}
	texts := []string{strings.TrimRight(joined.text, "\n")}
	for i := range occurrences[1:] {
		single, err := a.compose(&occurrences[i+1], conditionKeys, s)
		if firstErr == nil {
			firstErr = err
		}
		texts = append(texts, strings.TrimRight(single.text, "\n"))
	}
	if a.body == nil || firstErr != nil {
		joined.subject = fmt.Sprintf("%s: %d frames", occurrences[0].Rule.Name, len(occurrences))
	}
	joined.text = strings.Join(texts, "\n\n") + "\n"
	return joined.clip(), firstErr
}

// clip limits the lengths of the subject and the text.
func (m message) clip() message {
	if r := []rune(m.subject); len(r) > maxSubject {
		m.subject = string(r[:maxSubject]) + "…"
	}
	if len(m.text) > maxText {
		m.text = strings.ToValidUTF8(m.text[:maxText], "") + "\n…\n"
	}
	return m
}

// keyPrefix is the prefix of the placeholders of readings, such as %key:temperature.
const keyPrefix = "key:"

// placeholders returns the names that URLs and texts may contain after a percent sign.
func placeholders() []string {
	return []string{"rule", "state", "device", "identifier", "time", keyPrefix}
}

// placeholder returns the value of a placeholder. A missing reading has an empty value.
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

func (o *Occurrence) conditionSubject(zone *time.Location) condition.Subject {
	s := newConditionSubject(&o.Device, o.Device.LastSeen, o.Time, zone, o.Radio)
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
