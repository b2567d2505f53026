package submit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/penstock/penstock/delivery/carrier"
)

// Route is a carrier and what goes over it.
type Route struct {
	Name    string
	Carrier carrier.Carrier
	// Prefixes are of the numbers that it is for; none: all numbers.
	Prefixes []string
	// Window is how many parts may be under way at once; 0 means 10.
	Window int
	// PerSecond is how many parts may leave in a second; 0: as many as it takes.
	PerSecond float64
	// Again says that the carrier knows a part that it gets twice.
	Again bool
	// InTurn sends the parts of a message one after the other, because the
	// carrier does not keep their order by itself.
	InTurn bool
	// Reports says that receipts name a part by the id the carrier gave it.
	Reports bool
}

// router finds the carrier of a number.
type router struct{ byPrefix []prefix }

type prefix struct {
	digits string
	lane   *lane
}

// newRouter returns a router over lanes; of two with the same prefix the first
// counts.
func newRouter(lanes []*lane) router {
	var r router
	for _, l := range lanes {
		for _, digits := range orAll(l.route.Prefixes) {
			r.byPrefix = append(r.byPrefix, prefix{digits, l})
		}
	}
	slices.SortStableFunc(r.byPrefix, func(a, b prefix) int { return cmp.Compare(len(b.digits), len(a.digits)) })
	return r
}

// orAll are the prefixes, or the one that every number has.
func orAll(prefixes []string) []string {
	if len(prefixes) == 0 {
		return []string{""}
	}
	return prefixes
}

// lane returns the lane of the longest prefix of a number; nil if it has none.
func (r router) lane(number string) *lane {
	for _, p := range r.byPrefix {
		if strings.HasPrefix(number, p.digits) {
			return p.lane
		}
	}
	return nil
}
