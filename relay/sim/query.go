package sim

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// Columns lists what lists of SIMs are filtered and ordered by; the first one is
// the order unless another is asked for.
func Columns() []string { return []string{"iccid", "imsi", "msisdn"} }

// SubscriberColumns is Columns of subscribers. Names are compared without regard
// to case; the id, which is the order of registration, is no filter.
func SubscriberColumns() []string { return []string{"id", "forename", "surname"} }

// Match is how a filter compares.
type Match int

// The matches.
const (
	Equals Match = iota
	Differs
	Begins
)

// Filter keeps the records of a list whose column compares so with a value.
type Filter struct {
	Column string
	Match  Match
	Value  string
}

// Holds reports whether a column's value passes.
func (f Filter) Holds(value string) bool {
	switch f.Match {
	case Differs:
		return value != f.Value
	case Begins:
		return strings.HasPrefix(value, f.Value)
	}
	return value == f.Value
}

// ParseFilter reads a filter as requests have it: the operator is =, !=,
// starts_with or like, whose value ends in % for the beginning of a text and is
// the whole text otherwise. No operator means =. The value of the filter is empty if
// every record passes, as all do if the request has no value. If one is invalid, wrong
// names it, operator or value, and how is the reason.
func ParseFilter(column, operator, value string) (f Filter, wrong, text string) {
	if len(value) > maxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return f, "value", "must be a text of at most 255 characters."
	}
	f = Filter{Column: column, Value: value}
	switch operator {
	case "=", "":
	case "!=":
		f.Match = Differs
	case "starts_with":
		f.Match = Begins
	case "like":
		prefix, begins := strings.CutSuffix(value, "%")
		if strings.ContainsAny(prefix, "%_") {
			return f, "value", "must be a text, or its beginning followed by %."
		}
		if f.Value = prefix; begins {
			f.Match = Begins
		}
	default:
		return f, "operator", "must be =, !=, like or starts_with."
	}
	return f, "", ""
}

// Query is what a list is asked for. Filters have different columns.
type Query struct {
	relay.Page
	OrderBy    string // a column; empty: see Order
	Descending bool   // the exact reverse of ascending
	Filters    []Filter
}

// Order returns the index of the column that a list is ordered by: the requested one,
// else that of the first filter by a prefix, whose index has the results next to each
// other, else the first.
func (q Query) Order(columns []string) int {
	key := q.OrderBy
	for _, f := range q.Filters {
		if key == "" && f.Match == Begins {
			key = f.Column
		}
	}
	return max(0, slices.Index(columns, key))
}

// Scope is whose SIMs a list holds: those of a pool, of a subscriber, or, with
// neither, of the account. Never both.
type Scope struct{ Pool, Subscriber string }
