package cdr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
)

// parseGeneric parses a record of a call in the gateway's own format.
func parseGeneric(fields map[string]json.RawMessage, offset int, notes *decoders.Notes) (c Call, err error) {
	r := fieldReader{fields: fields, offset: offset}
	noteUnknown(notes, fields, offset, []string{"id", "from", "to", "disposition", "trunk", "start", "answer", "end", "duration", "billsec"})
	c.ID, c.From, c.To = r.text("id"), r.text("from"), r.text("to")
	c.Disposition, c.Trunk = r.text("disposition"), r.text("trunk")
	c.Start, c.Answer, c.End = r.time("start"), r.time("answer"), r.time("end")
	c.Duration = r.integer("duration", secondsBetween(c.Start, c.End))
	c.Billsec = r.integer("billsec", secondsBetween(c.Answer, c.End))
	if r.err != nil {
		return c, r.err
	}
	return finish(c, "json", offset)
}

func noteUnknown(notes *decoders.Notes, fields map[string]json.RawMessage, offset int, known []string) {
	var unknown []string
	for name := range fields {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		notes.Add(fmt.Sprintf("json: %.40s: offset %d: unknown field ignored", name, offset))
	}
}

// fieldReader reads the fields of one object. err is the first error.
type fieldReader struct {
	fields map[string]json.RawMessage
	offset int
	err    error
}

func (r *fieldReader) fail(name, reason string) {
	if r.err == nil {
		r.err = newError("json", name, r.offset, reason)
	}
}

// text returns a string or the text of a number. It returns "" for null and for a missing
// field.
func (r *fieldReader) text(name string) string {
	raw := strings.TrimSpace(string(r.fields[name]))
	if raw == "" || raw == "null" {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil {
		return s
	}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return raw
	}
	r.fail(name, "must be a string")
	return ""
}

// integer returns a whole number of seconds, or computed if the field is missing.
func (r *fieldReader) integer(name string, computed int64) int64 {
	text := r.text(name)
	if text == "" {
		return computed
	}
	n, err := decimal.PlainInt(text)
	if err != nil {
		r.fail(name, wantWholeSeconds)
	}
	return n
}

// time returns a time in ISO 8601, to the millisecond. A time without a zone is UTC.
func (r *fieldReader) time(name string) time.Time {
	text := strings.TrimSpace(r.text(name))
	if text == "" {
		return time.Time{}
	}
	t, ok := iso8601.Parse(text)
	if !ok {
		r.fail(name, wantTime)
	}
	return t.Truncate(time.Millisecond)
}

const wantTime = "must be a time like 2026-01-31T12:00:00Z"
