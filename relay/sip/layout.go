package sip

import (
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
)

// UKv3a is the only layout there is, and the default.
const UKv3a = "UKv3a"

// Header is the first line of each file.
func Header() []string {
	return []string{"call_id", "start", "answer", "end", "from", "to", "duration", "billsec", "disposition", "trunk"}
}

// moment is how times are written: to the second, with a fraction only where the
// switch told one.
const moment = "2006-01-02 15:04:05.999"

// Row is a call as the layout has it.
func Row(c cdr.Call) []string {
	return []string{
		inert(c.ID), written(c.Start), written(c.Answer), written(c.End), inert(c.From), inert(c.To),
		strconv.FormatInt(c.Duration, 10), strconv.FormatInt(c.Billsec, 10), inert(c.Disposition), inert(c.Trunk),
	}
}

func written(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(moment)
}

// inert keeps a spreadsheet from running a cell.
func inert(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

// File is the name of the file that a call belongs to: one for each day, or one
// for all.
func (o Order) File(c cdr.Call) string {
	if o.Single {
		return o.FirstFile()
	}
	return "cdr-" + c.Start.UTC().Format("20060102") + ".csv"
}

// FirstFile is the name of the only file of a single one, and of one without
// calls.
func (o Order) FirstFile() string {
	return "cdr-" + o.From.Format("20060102") + "-" + o.To.Add(-time.Second).Format("20060102") + ".csv"
}
