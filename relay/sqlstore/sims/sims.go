package sims

import (
	"context"
	"reflect"
	"slices"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// lists is a database whose lists are counted in blocks.
type lists struct {
	db    *sqlstore.DB
	limit readLimit
	known *known
	size  int // of a block
}

func newLists(db *sqlstore.DB) lists {
	return lists{db: db, limit: make(readLimit, maxConcurrentReads), known: newKnown(), size: blockSize}
}

// SIMs keeps SIMs.
type SIMs struct{ lists }

// NewSIMs returns the store of SIMs.
func NewSIMs(db *sqlstore.DB) *SIMs { return &SIMs{newLists(db)} }

const selectSIM = `
SELECT ` + columns + ` FROM sim
WHERE account = $1 AND iccid = $2`

// Get loads a SIM.
func (s *SIMs) Get(ctx context.Context, acct account.ID, iccid sim.ICCID) (sim.SIM, error) {
	return sqlstore.One(ctx, s.db, "SIM "+string(iccid), selectSIM, scan, acct, iccid)
}

const selectSIMs = `
SELECT ` + columns + ` FROM sim
WHERE account = $1 AND iccid IN (SELECT iccid FROM batch)`

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct account.ID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	return load(ctx, s.db, selectSIMs, acct, iccids)
}

// Change saves a SIM as changed by the function.
func (s *SIMs) Change(ctx context.Context, acct account.ID, iccid sim.ICCID, change func(*sim.SIM) error) (sim.SIM, error) {
	return sqlstore.Transact(ctx, s.db, "SIM "+string(iccid), func(ctx context.Context, tx *sqlstore.Tx) (sim.SIM, error) {
		return changeOne(ctx, tx, acct, iccid, s.size, change)
	})
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
	return shall, recountSIMs(ctx, tx, acct, size, all)
}

// Delete forgets a SIM.
func (s *SIMs) Delete(ctx context.Context, acct account.ID, iccid sim.ICCID) error {
	noun := "SIM " + string(iccid)
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		have, err := lockOne(ctx, tx, acct, iccid)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, noun, "DELETE FROM sim WHERE account = $1 AND iccid = $2", acct, iccid); err != nil {
			return err
		}
		return recountSIMs(ctx, tx, acct, s.size, []changed{{was: have}})
	})
}

// List returns a page of a list.
func (s *SIMs) List(ctx context.Context, acct account.ID, in sim.Scope, q sim.Query) ([]sim.SIM, int, error) {
	page, total, err := simsOf(acct, in).page(ctx, s.lists, q)
	if err != nil {
		return nil, 0, err
	}
	out, err := read(ctx, s.db, page, columns, scan)
	return out, total, err
}

// Scan returns the ICCIDs of a scope after the cursor from.
func (s *SIMs) Scan(ctx context.Context, acct account.ID, in sim.Scope, from sim.ICCID, limit int) ([]sim.ICCID, error) {
	l := simsOf(acct, in)
	r := fullRange(0)
	if from != "" {
		r.from.value = string(from) + separator // past it
	}
	query := l.inRange(r)
	text := query.ids(l.orderBy(0, false), limit, 0)
	return sqlstore.Values[sim.ICCID](ctx, s.db, "SIMs", text, query.args...)
}
