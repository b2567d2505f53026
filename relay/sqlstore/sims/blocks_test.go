package sims

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// countsAgree compares every block of every list with what a count of its records
// finds.
func countsAgree(t *testing.T, db *sqlstore.DB) {
	t.Helper()
	type list struct {
		account account.ID
		name    string
		column  int
	}
	all, err := sqlstore.List(t.Context(), db, "test", "SELECT DISTINCT account, list, col FROM sim_block", func(l *list) []any {
		return []any{&l.account, &l.name, &l.column}
	})
	relaytest.NoError(t, err)
	for _, one := range all {
		l := listNamed(one.account, one.name)
		blocks, err := l.blocks(t.Context(), db, fullRange(one.column))
		relaytest.NoError(t, err)
		for _, b := range blocks {
			n, err := l.inRange(keyRange{one.column, b.start, b.end}).count(t.Context(), db)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "records counted in a block", n, b.n)
		}
	}
}

func listNamed(acct account.ID, name string) listing {
	kind, id, _ := strings.Cut(name, "/")
	switch kind {
	case "subscribers":
		return subscribersOf(acct)
	case "pool":
		return simsOf(acct, sim.Scope{Pool: id})
	case "subscriber":
		return simsOf(acct, sim.Scope{Subscriber: id})
	}
	return simsOf(acct, sim.Scope{})
}

// fill declares so many SIMs with numbers that follow each other.
func fill(t testing.TB, s *SIMs, acct account.ID, n int) []sim.ICCID {
	t.Helper()
	all, iccids := make([]sim.SIM, n), make([]sim.ICCID, n)
	for i := range all {
		all[i] = declared(sim.ICCID(fmt.Sprintf("894400000000%07d", i)))
		iccids[i] = all[i].ICCID
	}
	if err := s.Declare(t.Context(), acct, all, false); err != nil {
		t.Fatal(err)
	}
	return iccids
}
