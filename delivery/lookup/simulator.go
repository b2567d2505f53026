package lookup

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
)

// Table lists the known networks.
type Table interface {
	Networks(ctx context.Context) ([]lookup.Network, error)
}

// Simulator finds the network of a number by the longest prefix in a table. The last four
// digits of a number can select another result, see docs/simulators.md.
type Simulator struct{ table Table }

// NewSimulator returns a Simulator.
func NewSimulator(t Table) *Simulator { return &Simulator{table: t} }

// Find returns the result that the table and the last digits of the number determine.
func (s *Simulator) Find(ctx context.Context, number relay.MSISDN) (lookup.Result, error) {
	networks, err := s.table.Networks(ctx)
	if err != nil {
		return lookup.Result{}, err
	}
	r := lookup.Result{Number: number}
	suffix := string(number[len(number)-4:])
	home, found := networkOf(string(number), networks)
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
	// A ported number belongs to the first other network of the country, if the table has one.
	otherNetwork := slices.IndexFunc(networks, func(n lookup.Network) bool { return n.MCC == home.MCC && n.MNC != home.MNC })
	if r.Ported && otherNetwork >= 0 {
		home = networks[otherNetwork]
	}
	r.MCC, r.MNC, r.Network, r.Country = home.MCC, home.MNC, home.Name, home.Country
	head, tail := home.MCC+home.MNC, strings.Repeat("0", 15)+string(number)
	r.IMSI = head + tail[len(tail)-(15-len(head)):] // 15 digits
	return r, nil
}

// networkOf returns the network with the longest prefix of a number.
func networkOf(number string, networks []lookup.Network) (best lookup.Network, found bool) {
	for _, n := range networks {
		if strings.HasPrefix(number, n.Prefix) && (!found || len(n.Prefix) > len(best.Prefix)) {
			best, found = n, true
		}
	}
	return best, found
}
