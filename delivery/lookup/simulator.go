package lookup

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
)

// Table holds the networks there are.
type Table interface {
	Networks(ctx context.Context) ([]lookup.Network, error)
}

// Simulator answers from a table, by the longest prefix. The last four digits of
// a number say what is special about it; see docs/simulators.md.
type Simulator struct{ table Table }

// NewSimulator returns a Simulator.
func NewSimulator(t Table) *Simulator { return &Simulator{table: t} }

// Find returns what the table and the number's last digits say.
func (s *Simulator) Find(ctx context.Context, number relay.MSISDN) (lookup.Result, error) {
	networks, err := s.table.Networks(ctx)
	if err != nil {
		return lookup.Result{}, err
	}
	r := lookup.Result{Number: number}
	suffix := string(number[len(number)-4:])
	home, found := longest(string(number), networks)
	switch {
	case suffix == "9004":
		return r, relay.Errorf(relay.KindUnavailable, "lookup: the simulated back end is down for numbers that end in 9004")
	case suffix == "9003":
		r.Code = lookup.NoAnswer
		return r, nil
	case suffix == "9001", !found:
		r.Code = lookup.Unknown
		return r, nil
	case suffix == "9002":
		r.Code = lookup.Absent
	}
	r.Ported = suffix == "9005" || suffix == "9007"
	r.Roaming = suffix == "9006" || suffix == "9007"
	// A ported number is in the first other network of the country, if the table has one.
	ported := slices.IndexFunc(networks, func(n lookup.Network) bool { return n.MCC == home.MCC && n.MNC != home.MNC })
	if r.Ported && ported >= 0 {
		home = networks[ported]
	}
	r.MCC, r.MNC, r.Network, r.Country = home.MCC, home.MNC, home.Name, home.Country
	head, tail := home.MCC+home.MNC, strings.Repeat("0", 15)+string(number)
	r.IMSI = head + tail[len(tail)-(15-len(head)):] // 15 digits
	return r, nil
}

// longest finds the network of a number.
func longest(number string, networks []lookup.Network) (best lookup.Network, found bool) {
	for _, n := range networks {
		if strings.HasPrefix(number, n.Prefix) && (!found || len(n.Prefix) > len(best.Prefix)) {
			best, found = n, true
		}
	}
	return best, found
}
