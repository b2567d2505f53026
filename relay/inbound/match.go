package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/account"
)

// Route is a relay that is ready to take messages: its endpoints are compiled.
type Route struct {
	Relay
	endpoints []*Template
	broken    error // why it cannot take any
}

// Compile readies a relay. One that cannot be performed is no error here: its
// messages are set aside with that reason, never dropped.
func Compile(r Relay) *Route {
	out := &Route{Relay: r}
	if err := r.Action.Validate(r.Kind, nil); err != nil {
		out.broken = fmt.Errorf("%s cannot be performed: %s", r, reason(err))
		return out
	}
	if info, _ := actionOf(r.Kind, r.Action.Name); info.takes == urls {
		for _, p := range r.Action.Parameters {
			t, _ := CompileURL(r.Kind, p) // just validated
			out.endpoints = append(out.endpoints, t)
		}
	}
	return out
}

// Considered is a relay that a message came near to.
type Considered struct {
	Kind    Kind       `json:"kind"`
	ID      string     `json:"id"`
	Account account.ID `json:"account"`
	Why     string     `json:"why"`
}

// match picks the route of a number: the exact virtual number, else the longest
// prefix, among those the account may reach.
func match(acct account.ID, number string, routes []*Route) (matched *Route, why string, considered []Considered) {
	sorted := slices.SortedFunc(slices.Values(routes), precedence)
	for _, r := range sorted {
		fits, how := r.fits(number)
		switch {
		case !fits:
			continue
		case acct != 0 && r.Account != acct:
			how = "belongs to another account"
		case matched == nil:
			matched, why = r, how
		default:
			how += ", but " + matched.String() + " goes before it"
		}
		considered = append(considered, Considered{Kind: r.Kind, ID: r.ID, Account: r.Account, Why: how})
	}
	return matched, why, considered
}

func (r *Route) fits(number string) (bool, string) {
	if r.Kind == VirtualNumber {
		return r.Number == number, "is the virtual number " + r.Number
	}
	return strings.HasPrefix(number, r.Number), "has the prefix " + r.Number
}

// precedence puts virtual numbers before prefixes and long prefixes before
// short ones.
func precedence(a, b *Route) int {
	return cmp.Or(
		-cmp.Compare(a.Kind, b.Kind), // vmn before geo
		cmp.Compare(len(b.Number), len(a.Number)),
		cmp.Compare(a.Account, b.Account),
		cmp.Compare(a.ID, b.ID),
	)
}
