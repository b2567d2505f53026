package netserver

import (
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
)

// parseMonnitRule reads iMonnit's rule webhook, which posts that a rule was
// triggered. Its texts are for people; they are kept as an alert and never
// taken for a reading. The acknowledgeURL is a credential and is not kept.
func parseMonnitRule(p Post) ([]decoders.Frame, error) {
	e := newEnvelope(MonnitRule, p.Body)
	var subject, reading, rule, day, clock string
	var key []byte
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "subject":
			subject = e.text("subject")
		case "reading":
			reading = e.text("reading")
		case "rule":
			rule = e.text("rule")
		case "deviceID":
			e.f.Identifier = e.text("deviceID")
		case "networkID":
			e.f.Application = e.text("networkID")
		case "date":
			day = e.text("date")
		case "time":
			clock = e.text("time")
		default:
			e.r.Skip()
		}
	}
	e.named("deviceID")
	e.f.Kind = decoders.Alert
	e.f.Text = said(rule, subject, reading)
	e.f.NetworkTime = e.moment(day, clock)
	if !e.f.NetworkTime.IsZero() {
		e.f.DedupID = counted(0, e.f.NetworkTime) + ":" + e.f.Text
	}
	return e.finish()
}

func said(texts ...string) string {
	var given []string
	for _, s := range texts {
		if s != "" {
			given = append(given, s)
		}
	}
	return strings.Join(given, ": ")
}

// moment joins a date and a time of day, which have no zone and are taken for
// UTC, as the data webhook's are.
func (e *envelope) moment(day, clock string) time.Time {
	if day == "" {
		return time.Time{}
	}
	for _, layout := range []string{"2006-1-2 15:04", "2006-1-2 15:04:05", "1/2/2006 3:04 PM", "1/2/2006 15:04"} {
		if at, err := time.Parse(layout, day+" "+clock); err == nil {
			return at.UTC()
		}
	}
	e.f.TimeNote = "date: is not a time: " + clip([]byte(day+" "+clock))
	return time.Time{}
}
