package cdr

import (
	"errors"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Call is the record of one call.
type Call struct {
	// ID is the switch's identifier of the call.
	ID string
	// Key identifies the record. It is the ID, except for Asterisk, which writes several
	// records with the same ID.
	Key string
	// Start, Answer and End are UTC, to the millisecond. Answer and End are zero
	// if they are unknown.
	Start, Answer, End time.Time
	// Duration is the time from Start to End, Billsec from Answer to End, in seconds.
	Duration, Billsec int64
	From, To          string // without surrounding blanks
	// Disposition is the result of the call in the switch's terms.
	Disposition string
	Trunk       string // empty if it is unknown
}

const (
	// maxText is the largest length of a text in a record, in bytes.
	maxText = 255
	// maxSeconds is the longest duration of a call, some 30 years.
	maxSeconds = 1_000_000_000

	wantSeconds      = "must be a number of seconds from 0 to 1,000,000,000"
	wantWholeSeconds = "must be a whole number of seconds"
)

func newError(format, field string, offset int, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: offset, Reason: reason}
}

// impossibleError is the error of a well-formed record with impossible values.
type impossibleError struct{ cause error }

func (i impossibleError) Error() string { return i.cause.Error() }

// IsImpossible reports whether an error is about a well-formed record with impossible values:
// a negative or excessive amount, a time outside 1970 to 2200, times in the wrong order. Posts
// with these records are stored, because the records are evidence of a fault of the switch.
func IsImpossible(err error) bool {
	_, ok := errors.AsType[impossibleError](err)
	return ok
}

// finish validates a record and sets its Key.
func finish(c Call, format string, offset int) (Call, error) {
	for _, f := range []struct {
		name string
		text *string
	}{{"id", &c.ID}, {"from", &c.From}, {"to", &c.To}, {"disposition", &c.Disposition}, {"trunk", &c.Trunk}} {
		*f.text = strings.ToValidUTF8(strings.TrimSpace(*f.text), "")
		if len(*f.text) > maxText {
			return c, newError(format, f.name, offset, "is longer than 255 bytes")
		}
	}
	switch {
	case c.ID == "":
		return c, newError(format, "id", offset, "is missing")
	case c.Start.IsZero():
		return c, newError(format, "start", offset, "is missing")
	case !isPlausible(c.Start) || !isPlausible(c.Answer) || !isPlausible(c.End):
		return c, impossibleError{newError(format, "start", offset, "lies outside 1970 to 2200")}
	case !c.Answer.IsZero() && c.Answer.Before(c.Start):
		return c, impossibleError{newError(format, "answer", offset, "is before the start")}
	case !c.End.IsZero() && c.End.Before(c.Start):
		return c, impossibleError{newError(format, "end", offset, "is before the start")}
	case !c.End.IsZero() && c.End.Before(c.Answer):
		return c, impossibleError{newError(format, "end", offset, "is before the answer")}
	case c.Duration < 0 || c.Duration > maxSeconds:
		return c, impossibleError{newError(format, "duration", offset, wantSeconds)}
	case c.Billsec < 0 || c.Billsec > maxSeconds:
		return c, impossibleError{newError(format, "billsec", offset, wantSeconds)}
	}
	if c.Key == "" {
		c.Key = c.ID
	}
	return c, nil
}

// isPlausible reports whether a time is zero or can be stored in each database.
func isPlausible(t time.Time) bool {
	return t.IsZero() || t.Year() >= 1970 && t.Year() < 2200
}

// secondsBetween returns the time between start and end, or 0 if one is unknown.
func secondsBetween(start, end time.Time) int64 {
	if start.IsZero() || end.IsZero() {
		return 0
	}
	return int64(end.Sub(start) / time.Second)
}
