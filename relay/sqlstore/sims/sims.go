package sims

import (
	"context"
	"reflect"
	"slices"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// SIMs keeps SIMs.
type SIMs struct {
	db    *sqlstore.DB
	turns turns
	size  int // of a block
}

// NewSIMs returns the store of SIMs.
func NewSIMs(db *sqlstore.DB) *SIMs {
	return &SIMs{db: db, turns: make(turns, maxTurns), size: blockSize}
}

const selectSIM = `
SELECT ` + columns + ` FROM sim
WHERE account = $1 AND iccid = $2`

// Get loads a SIM.
func (s *SIMs) Get(ctx context.Context, acct account.ID, iccid sim.ICCID) (sim.SIM, error) {
	return sqlstore.One(ctx, s.db, "SIM "+string(iccid), selectSIM, scan, int64(acct), string(iccid))
}

const selectSIMs = `
SELECT ` + columns + ` FROM sim
WHERE account = $1 AND iccid IN (SELECT iccid FROM batch)`

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct account.ID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	return load(ctx, s.db, selectSIMs, acct, iccids)
}

// Change saves what change makes of a SIM.
func (s *SIMs) Change(ctx context.Context, acct account.ID, iccid sim.ICCID, change func(*sim.SIM) error) (out sim.SIM, err error) {
	err = s.db.Write(ctx, "SIM "+string(iccid), func(ctx context.Context, tx *sqlstore.Tx) error {
		out, err = changeOne(ctx, tx, acct, iccid, s.size, change)
		return err
	})
	if err != nil {
		return sim.SIM{}, err
	}
	return out, nil
}

// changeOne is Change in a transaction.
func changeOne(ctx context.Context, tx *sqlstore.Tx, acct account.ID, iccid sim.ICCID, size int, change func(*sim.SIM) error) (sim.SIM, error) {
	have, err := lockOne(ctx, tx, acct, iccid)
	if err != nil {
		return sim.SIM{}, err
	}
	shall := have
	shall.Recipients = slices.Clone(have.Recipients)
	if err := change(&shall); err != nil {
		return sim.SIM{}, err
	}
	shall.ICCID, shall.Pool = have.ICCID, have.Pool
	if reflect.DeepEqual(have, shall) {
		return shall, nil
	}
	all := []changed{{have, shall}}
	if err := update(ctx, tx, acct, all); err != nil {
		return sim.SIM{}, err
	}
	return shall, count(ctx, tx, acct, size, all)
}

// Delete forgets a SIM.
func (s *SIMs) Delete(ctx context.Context, acct account.ID, iccid sim.ICCID) error {
	noun := "SIM " + string(iccid)
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		have, err := lockOne(ctx, tx, acct, iccid)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, noun, "DELETE FROM sim WHERE account = $1 AND iccid = $2", int64(acct), string(iccid)); err != nil {
			return err
		}
		return count(ctx, tx, acct, s.size, []changed{{was: have}})
	})
}

// List returns a page of a list.
func (s *SIMs) List(ctx context.Context, acct account.ID, in sim.Scope, q sim.Query) ([]sim.SIM, int, error) {
	ids, total, err := simsOf(acct, in).page(ctx, s.db, s.turns, q)
	if err != nil || len(ids) == 0 {
		return nil, total, err
	}
	found, err := s.GetMany(ctx, acct, iccidsOf(ids))
	out := make([]sim.SIM, 0, len(ids))
	for _, id := range ids {
		if one, there := found[sim.ICCID(id)]; there { // else it was deleted meanwhile
			out = append(out, one)
		}
	}
	return out, total, err
}

func iccidsOf(ids []string) []sim.ICCID {
	out := make([]sim.ICCID, len(ids))
	for i, id := range ids {
		out[i] = sim.ICCID(id)
	}
	return out
}

// Walk returns the ICCIDs of a scope that come after one.
func (s *SIMs) Walk(ctx context.Context, acct account.ID, in sim.Scope, from sim.ICCID, limit int) ([]sim.ICCID, error) {
	l := simsOf(acct, in)
	part := whole(0)
	if from != "" {
		part.from.value = string(from) + separator // past it
	}
	ids, err := l.over(part).ids(ctx, s.db, l.by(0, false), limit, 0)
	return iccidsOf(ids), err
}
