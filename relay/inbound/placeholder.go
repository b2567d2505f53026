package inbound

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay/template"
)

// view is a message with the time zone of its placeholders.
type view struct {
	*Message
	zone *time.Location
}

// placeholder is a placeholder of endpoints and the form field with the same value.
type placeholder struct {
	name  string // after the percent sign; empty for a field without a placeholder
	field string // of the form that http_post sends
	value func(view) string
}

// placeholders returns the placeholders of a kind of relay, in the order of the form
// (specification 1, events 3 and 4).
func placeholders(k Kind) []placeholder {
	if k == Geographic {
		return []placeholder{
			{"m", "message", bodyOf},
			{"o", "originator", senderOf},
			{"d", "destination", recipientOf},
			{"t", "timestamp", func(v view) string { return clock(v.ReceivedAt, time.UTC) }},
			{"x", "unix_time", func(v view) string { return strconv.FormatInt(v.ReceivedAt.Unix(), 10) }},
			{"u", "udh", udhOf},
			{"i", "message_id", idOf},
		}
	}
	return []placeholder{
		{"id", "id", idOf},
		{"stat", "stat", func(v view) string { return strconv.Itoa(int(v.Stat)) }},
		{"orig", "orig", senderOf},
		{"dest", "dest", recipientOf},
		{"msg", "msg", bodyOf},
		{"time", "time", func(v view) string { return clock(v.ReceivedAt, v.zone) }},
		{"timeZone", "timeZone", func(v view) string {
			// The offset from UTC at the time of receipt in hours, rounded toward zero.
			_, seconds := v.ReceivedAt.In(v.zone).Zone()
			return strconv.Itoa(seconds / 3600)
		}},
		{"smsTime", "smsTime", func(v view) string { // the time of receipt if the carrier sends no time
			if v.SentAt.IsZero() {
				return clock(v.ReceivedAt, v.zone)
			}
			return clock(v.SentAt, v.zone)
		}},
		{"netw", "netw", networkOf},
		{"code", "code", func(v view) string { return strconv.Itoa(int(v.Coding)) }},
		{"udh", "udh", udhOf},
	}
}

func idOf(v view) string        { return v.ID }
func senderOf(v view) string    { return v.From }
func recipientOf(v view) string { return v.To }
func bodyOf(v view) string      { return v.Body() }
func udhOf(v view) string       { return hex.EncodeToString(v.UDH) }

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.DateTime) }

func networkOf(v view) string { return cmp.Or(v.Network, v.Reference) }

// Template is a compiled endpoint of a relay. It is read-only.
type Template struct {
	url    *template.Template
	values map[string]func(view) string
}

// CompileURL compiles an endpoint of a kind of relay; see template.Compile.
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

// Sample returns the URL with sample values for the placeholders.
func (t *Template) Sample() string { return t.url.Sample() }

func (t *Template) expand(v view) string {
	return t.url.Expand(func(name string) string { return t.values[name](v) })
}
