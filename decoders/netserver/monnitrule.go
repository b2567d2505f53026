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
	return oneFrame(MonnitRule, p.Body, monnitRuleFrame)
}

func monnitRuleFrame(d document, f *decoders.Frame) {
	f.Kind = decoders.Alert
	if f.Identifier = d.Text("deviceID"); f.Identifier == "" {
		d.Refuse("deviceID", noDevice)
	}
	f.Application = d.Text("networkID")
	f.Text = said(d.Text("rule"), d.Text("subject"), d.Text("reading"))
	f.NetworkTime = dayAndClock(f, d.Text("date"), d.Text("time"))
	if !f.NetworkTime.IsZero() {
		f.DedupID = counted(0, f.NetworkTime) + ":" + f.Text
	}
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

// dayAndClock joins a date and a time of day, which have no zone and are taken
// for UTC, as the data webhook's are.
func dayAndClock(f *decoders.Frame, day, clock string) time.Time {
	if day == "" {
		return time.Time{}
	}
	for _, layout := range []string{"2006-1-2 15:04", "2006-1-2 15:04:05", "1/2/2006 3:04 PM", "1/2/2006 15:04"} {
		if at, err := time.Parse(layout, day+" "+clock); err == nil {
			return at.UTC()
		}
	}
	f.TimeNote = "date: is not a time: " + quoteClipped([]byte(day+" "+clock))
	return time.Time{}
}
