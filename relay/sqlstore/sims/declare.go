package sims

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// declareBatch is how many SIMs one transaction declares.
const declareBatch = 2000

// Declare saves the SIMs of an inventory.
func (s *SIMs) Declare(ctx context.Context, acct account.ID, all []sim.SIM, reset bool) error {
	for some := range slices.Chunk(all, declareBatch) {
		declared := make(map[sim.ICCID]sim.SIM, len(some)) // the last of those that are named twice
		for _, one := range some {
			declared[one.ICCID] = one
		}
		err := s.db.Write(ctx, "SIMs: declare", func(ctx context.Context, tx *sqlstore.Tx) error {
			return s.declare(ctx, tx, acct, declared, reset)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// declareRounds is how often SIMs are declared again that another gateway has just
// made.
const declareRounds = 10

func (s *SIMs) declare(ctx context.Context, tx *sqlstore.Tx, acct account.ID, declared map[sim.ICCID]sim.SIM, reset bool) error {
	left := slices.Sorted(maps.Keys(declared))
	var done []changed
	for round := 0; len(left) > 0; round++ {
		if round == declareRounds {
			return relay.Errorf(relay.KindUnavailable, "SIM %s: too many concurrent updates", left[0])
		}
		known, fresh, err := decide(ctx, tx, acct, left, declared, reset)
		if err != nil {
			return err
		}
		if err := update(ctx, tx, acct, known); err != nil {
			return err
		}
		inserted, err := insert(ctx, tx, acct, fresh)
		if err != nil {
			return err
		}
		done, left = append(done, known...), left[:0]
		for _, c := range fresh {
			if inserted[c.is.ICCID] {
				done = append(done, c)
			} else {
				left = append(left, c.is.ICCID)
			}
		}
	}
	return recountSIMs(ctx, tx, acct, s.size, done)
}

// decide locks the SIMs that exist and returns what becomes of them, if they
// change, and those that are new.
func decide(
	ctx context.Context, tx *sqlstore.Tx, acct account.ID, iccids []sim.ICCID, declared map[sim.ICCID]sim.SIM, reset bool,
) (known, fresh []changed, err error) {
	have, err := lockAll(ctx, tx, acct, iccids)
	if err != nil {
		return nil, nil, err
	}
	for _, iccid := range iccids {
		was, there := have[iccid]
		c := changed{was, sim.Declared(was, declared[iccid], reset)}
		switch {
		case !there:
			fresh = append(fresh, c)
		case !reflect.DeepEqual(c.was, c.is):
			known = append(known, c)
		}
	}
	return known, fresh, nil
}
