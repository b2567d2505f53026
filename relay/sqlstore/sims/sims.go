// Package sims keeps SIMs, pools, subscribers and what jobs do with SIMs in SQL.
//
// # Lists
//
// A list is the SIMs of an account, of a pool or of a subscriber, or an account's
// subscribers, in the order of a column, with ties in the order of ids; all by
// bytes. An account may have a million SIMs, and a page has its number and the
// total, so that neither may take a scan of the list: sim_block has the number of
// records in each range of some thousand (blocks.go), and a page is read from the
// nearest known position (plan.go). The counts are updated in the transaction that
// changes the list, under the lock of that list, after the locks of SIMs.
package sims

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/jobs"
)

// lists is a database whose lists are counted in blocks.
type lists struct {
	db    *sqlstore.DB
	limit readLimit
	cache *positionCache
	size  int // of a block
}

func newLists(db *sqlstore.DB) lists {
	return lists{db: db, limit: make(readLimit, maxConcurrentReads), cache: newPositionCache(), size: blockSize}
}

// SIMs keeps SIMs, in step with jobs.
type SIMs struct{ lists }

// NewSIMs returns the store of SIMs.
func NewSIMs(db *sqlstore.DB) *SIMs { return &SIMs{newLists(db)} }

// Get loads a SIM.
func (s *SIMs) Get(ctx context.Context, acct account.ID, iccid sim.ICCID) (sim.SIM, error) {
	return loadOne(ctx, s.db, acct, iccid, "")
}

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct account.ID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	return load(ctx, s.db, acct, iccids, "")
}

// Change saves a SIM as changed by the function.
func (s *SIMs) Change(ctx context.Context, acct account.ID, iccid sim.ICCID, change func(*sim.SIM) error) (sim.SIM, error) {
	return sqlstore.Transact(ctx, s.db, "SIM "+string(iccid), func(ctx context.Context, tx *sqlstore.Tx) (sim.SIM, error) {
		return changeOne(ctx, tx, acct, iccid, s.size, change)
	})
}

// changeOne is Change in a transaction.
func changeOne(ctx context.Context, tx *sqlstore.Tx, acct account.ID, iccid sim.ICCID, size int, change func(*sim.SIM) error) (sim.SIM, error) {
	have, err := loadOne(ctx, tx, acct, iccid, forUpdate)
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
		have, err := loadOne(ctx, tx, acct, iccid, forUpdate)
		if err != nil {
			return err
		}
		if err := tx.Run(ctx, noun, "DELETE FROM sim WHERE account = $1 AND iccid = $2", acct, iccid); err != nil {
			return err
		}
		return recountSIMs(ctx, tx, acct, s.size, []changed{{was: have}})
	})
}

// List returns a page of a list.
func (s *SIMs) List(ctx context.Context, acct account.ID, in sim.Scope, q sim.Query) ([]sim.SIM, int, error) {
	return readPage(ctx, s.lists, simsOf(acct, in), q, columns, read)
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
	return sqlstore.Values[sim.ICCID](ctx, s.db, "SIMs", text, query.Args()...)
}

// Find returns SIMs of one or all accounts, by account and ICCID. A text that few SIMs
// hold has it read all of them.
func (s *SIMs) Find(ctx context.Context, f sim.Search) ([]sim.Found, error) {
	var w sqlstore.Where
	w.AndSet("account = ?", f.Account)
	w.And("(account, iccid) > (?, ?)", f.After.Account, f.After.ICCID)
	w.AndSet("state = ?", f.State)
	w.AndSet("pool = ?", f.Pool)
	switch {
	case f.Text == "":
	case strings.Trim(f.Text, "0123456789") == "":
		w.And("(iccid LIKE ? OR imsi LIKE ? OR msisdn LIKE ?)", "%"+f.Text+"%")
	default:
		w.And("(pool = ? OR subscriber = ?)", f.Text)
	}
	return sqlstore.Page(ctx, s.db, "SIMs", "SELECT account, "+columns+" FROM sim", &w, "account, iccid", f.Limit, func(f *sim.Found) []any {
		return append([]any{&f.Account}, read(&f.SIM)...)
	})
}

// Begin saves what change makes of a SIM together with a new job. A job that is
// there has begun: the answer was lost then, and it may have changed the SIM since.
func (s *SIMs) Begin(ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) error) error {
	return s.db.Write(ctx, "job "+j.ID+": begin", func(ctx context.Context, tx *sqlstore.Tx) error {
		created, err := jobs.Create(ctx, tx, j)
		if err != nil || !created {
			return err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, s.size, change)
		return err
	})
}

// Settle saves what change makes of a SIM together with what the job came to.
func (s *SIMs) Settle(
	ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) (json.RawMessage, error),
) (json.RawMessage, error) {
	ref, noun := job.Ref{Account: j.Account, ID: j.ID}, "job "+j.ID+": settle"
	return sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) (json.RawMessage, error) {
		settled, err := jobs.Settled(ctx, tx, ref)
		if err != nil || settled != nil {
			return settled, err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, s.size, func(one *sim.SIM) (err error) {
			settled, err = change(one)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", noun, err)
		}
		return settled, jobs.Settle(ctx, tx, ref, settled)
	})
}

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
	have, err := load(ctx, tx, acct, iccids, " ORDER BY iccid"+forUpdate)
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
