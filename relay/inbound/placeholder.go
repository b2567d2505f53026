package inbound

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay/template"
)

// view is a message with the further values of its placeholders.
type view struct {
	*Message
	zone *time.Location
}

// placeholder is one name that a relay's endpoint may contain after a percent
// sign, and the form field that http_post sends for it.
type placeholder struct {
	name  string
	field string
	value func(view) string
}

// formField is a field of a form, with its value for a message.
type formField struct {
	name  string
	value func(view) string
}

// placeholders lists those of a kind of relay in the order of the form
// (specification 1, events 3 and 4).
func placeholders(k Kind) []placeholder {
	if k == Geographic {
		return []placeholder{
			{"m", "message", body},
			{"o", "originator", sender},
			{"d", "destination", recipient},
			{"t", "timestamp", func(v view) string { return clock(v.ReceivedAt, time.UTC) }},
			{"x", "unix_time", func(v view) string { return strconv.FormatInt(v.ReceivedAt.Unix(), 10) }},
			{"u", "udh", udh},
			{"i", "message_id", id},
		}
	}
	return []placeholder{
		{"id", "id", id},
		{"stat", "stat", func(v view) string { return strconv.Itoa(int(v.Status)) }},
		{"orig", "orig", sender},
		{"dest", "dest", recipient},
		{"msg", "msg", body},
		{"time", "time", func(v view) string { return clock(v.ReceivedAt, v.zone) }},
		{"timeZone", "timeZone", func(v view) string {
			// The offset from UTC at receipt in whole hours, those of half an hour rounded
			// toward zero.
			_, seconds := v.ReceivedAt.In(v.zone).Zone()
			return strconv.Itoa(seconds / 3600)
		}},
		{"smsTime", "smsTime", func(v view) string { // of receipt if the carrier is silent
			if v.SentAt.IsZero() {
				return clock(v.ReceivedAt, v.zone)
			}
			return clock(v.SentAt, v.zone)
		}},
		{"netw", "netw", network},
		{"code", "code", func(v view) string { return strconv.Itoa(int(v.Coding)) }},
		{"udh", "udh", udh},
	}
}

// postFields lists the fields of http_post's form: one for each placeholder.
func postFields(k Kind) (fields []formField) {
	for _, p := range placeholders(k) {
		fields = append(fields, formField{p.field, p.value})
	}
	return fields
}

func id(v view) string        { return v.ID }
func sender(v view) string    { return v.From }
func recipient(v view) string { return v.To }
func body(v view) string      { return v.Body() }
func udh(v view) string       { return hex.EncodeToString(v.UDH) }

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.DateTime) }

func network(v view) string {
	if v.Network != "" {
		return v.Network
	}
	return v.Reference
}

// Template is a relay's endpoint, compiled. It is read-only.
type Template struct {
	url    *template.Template
	values map[string]func(view) string
}

// CompileURL reads an endpoint of a kind of relay; see template.Compile.
func CompileURL(k Kind, raw string) (*Template, error) {
	t := &Template{values: make(map[string]func(view) string)}
	var names []string
	for _, p := range placeholders(k) {
		names = append(names, p.name)
		t.values[p.name] = p.value
	}
	var err error
	t.url, err = template.Compile(raw, names)
	return t, err
}

// Sample returns the URL with a sample in the place of every placeholder, for
// checks of where it leads.
func (t *Template) Sample() string { return t.url.Sample() }

// expand replaces every placeholder by its value, escaped.
func (t *Template) expand(v view) string {
	return t.url.Expand(func(name string) string { return t.values[name](v) })
}
