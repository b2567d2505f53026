package usage

import (
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
)

// Record is one use of a SIM of an account.
type Record struct {
	Account relay.AccountID
	// Pool is the pool of the SIM, which the Meter sets; empty means none.
	Pool string
	Use  cdr.Use
}

// Span is a period from From, inclusive, to To, exclusive.
type Span struct{ From, To time.Time }

// Cursor is the position of a record; reading continues after it. The zero value is before the
// first record.
type Cursor struct {
	Start time.Time
	N     int64 // the record's number in the order of arrival
}

// StoredRecord is a record with its position.
type StoredRecord struct {
	Cursor
	Use cdr.Use
}

// Sum is the usage of a SIM in a period, in bytes.
type Sum struct {
	ICCID string
	Bytes int64
}

// IntervalSum is the usage of a SIM, of one type, in an interval of a period.
type IntervalSum struct {
	Start    time.Time // beginning of the interval
	Type     string    // one of cdr.Types
	Bytes    int64
	Duration int64 // seconds
	Records  int64
}

// Month is a calendar month in UTC: year × 100 + month.
type Month int

// MonthOf returns the month of a time.
func MonthOf(t time.Time) Month {
	t = t.UTC()
	return Month(t.Year()*100 + int(t.Month()))
}

// String returns the month in the form 2026-11.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m/100, m%100) }

// Scope is the kind of a subject.
type Scope string

// The scopes.
const (
	OfSIM  Scope = "sim"
	OfPool Scope = "pool"
)

// Subject is an object whose usage is counted: a SIM or a pool, in a month.
type Subject struct {
	Scope Scope
	ID    string // the ICCID, or the pool's id
	Month Month
}

// Total is the usage of a subject in bytes and the recorded steps.
type Total struct {
	Bytes int64
	Steps Steps
}

// Steps is a set of actions that are taken when usage reaches a limit.
type Steps int

// The steps.
const (
	Warned        Steps = 1 << iota
	LimitReported       // the notification of the reached limit was sent
	Blocked             // the suspension of all SIMs of a pool was ordered
)

// Has reports whether the set contains all of the steps.
func (s Steps) Has(steps Steps) bool { return s&steps == steps }
