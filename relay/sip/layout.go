package sip

import (
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
)

// UKv3a is the only layout, and the default.
const UKv3a = "UKv3a"

// Header returns the first line of each file.
func Header() []string {
	return []string{"call_id", "start", "answer", "end", "from", "to", "duration", "billsec", "disposition", "trunk"}
}

// timeLayout is the format of times: to the second, with a fraction only where the
// switch reported one.
const timeLayout = "2006-01-02 15:04:05.999"

// Row returns the cells of a call.
func Row(c cdr.Call) []string {
	return []string{
		cdr.Inert(c.ID), formatTime(c.Start), formatTime(c.Answer), formatTime(c.End), cdr.Inert(c.From), cdr.Inert(c.To),
		strconv.FormatInt(c.Duration, 10), strconv.FormatInt(c.Billsec, 10), cdr.Inert(c.Disposition), cdr.Inert(c.Trunk),
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// File returns the name of the file for a call: one file for each day, or one for all.
func (o Order) File(c cdr.Call) string {
	if o.Single {
		return o.FirstFile()
	}
	return "cdr-" + c.Start.UTC().Format("20060102") + ".csv"
}

// FirstFile returns the name of the only file of a single archive or of an archive without
// calls.
func (o Order) FirstFile() string {
	return "cdr-" + o.From.Format("20060102") + "-" + o.To.Add(-time.Second).Format("20060102") + ".csv"
}
