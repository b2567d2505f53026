package cdr

import (
	"errors"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Call is the record of one call.
type Call struct {
	// ID is the switch's own name of the call.
	ID string
	// Key identifies a record: two records with one key are one record. It is the
	// id, and more for Asterisk, which writes several records of one id.
	Key string
	// Start, Answer and End are UTC, to the millisecond; Answer and End are zero
	// where the switch gives none.
	Start, Answer, End time.Time
	// Duration is from start to end, Billsec from answer to end, in seconds.
	Duration, Billsec int64
	From, To          string // as the switch has them
	// Disposition is the result of the call, in the switch's words.
	Disposition string
	Trunk       string // the way it took; empty if that is not reported
}

const (
	// maxText is the longest text of a record, in bytes.
	maxText = 255
	// maxSeconds bounds a call: some 30 years.
	maxSeconds = 1_000_000_000

	wantSeconds = "want a number of seconds from 0 to 1,000,000,000"
)

func reject(format, field string, offset int, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: offset, Reason: reason}
}

// impossible is the error of a record that was read and cannot be true.
type impossible struct{ cause error }

func (i impossible) Error() string { return i.cause.Error() }

// IsImpossible reports whether an error is about a record that was read and cannot be
// true: an amount below zero or beyond any call, a time that is before 1970 or after
// another one that it precedes. Such a record is evidence of a fault of the switch, so its
// post is kept.
func IsImpossible(err error) bool {
	_, ok := errors.AsType[impossible](err)
	return ok
}

// finish completes a record, or says what it lacks.
func finish(c Call, format string, offset int) (Call, error) {
	for _, f := range []struct {
		name string
		text *string
	}{{"id", &c.ID}, {"from", &c.From}, {"to", &c.To}, {"disposition", &c.Disposition}, {"trunk", &c.Trunk}} {
		*f.text = strings.ToValidUTF8(strings.TrimSpace(*f.text), "")
		if len(*f.text) > maxText {
			return c, reject(format, f.name, offset, "is longer than 255 bytes")
		}
	}
	switch {
	case c.ID == "":
		return c, reject(format, "id", offset, "is missing")
	case c.Start.IsZero():
		return c, reject(format, "start", offset, "is missing")
	case !plausible(c.Start) || !plausible(c.Answer) || !plausible(c.End):
		return c, impossible{reject(format, "start", offset, "lies outside 1970 to 2200")}
	case !c.Answer.IsZero() && c.Answer.Before(c.Start):
		return c, impossible{reject(format, "answer", offset, "is before the start")}
	case !c.End.IsZero() && c.End.Before(c.Start):
		return c, impossible{reject(format, "end", offset, "is before the start")}
	case !c.End.IsZero() && c.End.Before(c.Answer):
		return c, impossible{reject(format, "end", offset, "is before the answer")}
	case c.Duration < 0 || c.Duration > maxSeconds:
		return c, impossible{reject(format, "duration", offset, wantSeconds)}
	case c.Billsec < 0 || c.Billsec > maxSeconds:
		return c, impossible{reject(format, "billsec", offset, wantSeconds)}
	}
	if c.Key == "" {
		c.Key = c.ID
	}
	return c, nil
}

// plausible keeps times within what every store holds.
func plausible(t time.Time) bool {
	return t.IsZero() || t.Year() >= 1970 && t.Year() < 2200
}

// seconds is the time between two moments, 0 where one is not known.
func seconds(start, end time.Time) int64 {
	if start.IsZero() || end.IsZero() {
		return 0
	}
	return int64(end.Sub(start) / time.Second)
}
