package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/job"
)

// SIMs keeps SIMs, in step with jobs.
type SIMs struct{ db *db.DB }

// NewSIMs returns the store of SIMs.
func NewSIMs(database *db.DB) *SIMs { return &SIMs{db: database} }

// Get loads a SIM.
func (s *SIMs) Get(ctx context.Context, acct relay.AccountID, iccid ICCID) (SIM, error) {
	return loadOne(ctx, s.db, acct, iccid, "")
}

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct relay.AccountID, iccids []ICCID) (map[ICCID]SIM, error) {
	return load(ctx, s.db, acct, iccids, "")
}

// Change saves a SIM as changed by the function.
func (s *SIMs) Change(ctx context.Context, acct relay.AccountID, iccid ICCID, change func(*SIM) error) (SIM, error) {
	return db.Transact(ctx, s.db, "SIM "+string(iccid), func(ctx context.Context, tx *db.Tx) (SIM, error) {
		return changeOne(ctx, tx, acct, iccid, change)
	})
}

// changeOne is Change in a transaction.
func changeOne(ctx context.Context, tx *db.Tx, acct relay.AccountID, iccid ICCID, change func(*SIM) error) (SIM, error) {
	have, err := loadOne(ctx, tx, acct, iccid, forUpdate)
	if err != nil {
		return SIM{}, err
	}
	shall := have
	shall.Recipients = slices.Clone(have.Recipients)
	if err := change(&shall); err != nil {
		return SIM{}, err
	}
	shall.ICCID, shall.Pool = have.ICCID, have.Pool
	if reflect.DeepEqual(have, shall) {
		return shall, nil
	}
	return shall, update(ctx, tx, acct, []changed{{have, shall}})
}

// Delete forgets a SIM.
func (s *SIMs) Delete(ctx context.Context, acct relay.AccountID, iccid ICCID) error {
	noun := "SIM " + string(iccid)
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		if err := db.MustChange(ctx, tx, noun, "DELETE FROM sim WHERE account = $1 AND iccid = $2", acct, iccid); err != nil {
			return err
		}
		return addToCount(ctx, tx, acct, simTable, -1)
	})
}

// simTable is the table of SIMs, and their list in sim_count.
const simTable = "sim"

// simsOf is the list of a scope.
func simsOf(acct relay.AccountID, scope Scope) list {
	return list{table: simTable, account: acct, scope: scope, columns: Columns()}
}

// List returns a page of a list.
func (s *SIMs) List(ctx context.Context, acct relay.AccountID, scope Scope, q Query) ([]SIM, int, error) {
	return readPage(ctx, s.db, simsOf(acct, scope), q, columns, read)
}

// Scan returns the ICCIDs of a scope after the cursor from.
func (s *SIMs) Scan(ctx context.Context, acct relay.AccountID, scope Scope, iccid ICCID, limit int) ([]ICCID, error) {
	where := simsOf(acct, scope).where(nil)
	where.And("iccid > ?", iccid)
	return db.Page(ctx, s.db, "SIMs", "SELECT iccid FROM sim", where, "iccid", limit, db.Self[ICCID])
}

// Ref names a SIM of an account.
type Ref struct {
	Account relay.AccountID
	ICCID   ICCID
}

// Search selects SIMs of one or all accounts; empty fields select all.
type Search struct {
	Account relay.AccountID
	// Text is a part of the ICCID, the IMSI or the MSISDN, or the id of the pool or of
	// the subscriber.
	Text  string
	State State
	Pool  string
	After Ref // the last of the page before
	Limit int
}

// Found is a SIM of a search, and its account.
type Found struct {
	Account relay.AccountID
	SIM
}

// Find returns SIMs of one or all accounts, by account and ICCID. A text that few SIMs
// hold has it read all of them.
func (s *SIMs) Find(ctx context.Context, f Search) ([]Found, error) {
	var w db.Where
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
	return db.Page(ctx, s.db, "SIMs", "SELECT "+columns+" FROM sim", &w, "account, iccid", f.Limit, func(f *Found) []any {
		return readOwned(&f.Account, &f.SIM)
	})
}

// Begin saves what change makes of a SIM together with a new job. A job that is
// there has begun: the answer was lost then, and it may have changed the SIM since.
func (s *SIMs) Begin(ctx context.Context, j job.Job, iccid ICCID, change func(*SIM) error) error {
	return s.db.Write(ctx, "job "+j.ID+": begin", func(ctx context.Context, tx *db.Tx) error {
		created, err := job.Create(ctx, tx, j)
		if err != nil || !created {
			return err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, change)
		return err
	})
}

// Settle saves what change makes of a SIM together with what the job came to.
func (s *SIMs) Settle(
	ctx context.Context, j job.Job, iccid ICCID, change func(*SIM) (json.RawMessage, error),
) (json.RawMessage, error) {
	ref, noun := job.Ref{Account: j.Account, ID: j.ID}, "job "+j.ID+": settle"
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (json.RawMessage, error) {
		settled, err := job.Settled(ctx, tx, ref)
		if err != nil || settled != nil {
			return settled, err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, func(sim *SIM) (err error) {
			settled, err = change(sim)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", noun, err)
		}
		return settled, job.Settle(ctx, tx, ref, settled)
	})
}

// declareBatch is how many SIMs one transaction declares.
const declareBatch = 2000

// Declare saves the SIMs of an inventory.
func (s *SIMs) Declare(ctx context.Context, acct relay.AccountID, sims []SIM, reset bool) error {
	for chunk := range slices.Chunk(sims, declareBatch) {
		declared := make(map[ICCID]SIM, len(chunk)) // the last of those that are named twice
		for _, sim := range chunk {
			declared[sim.ICCID] = sim
		}
		err := s.db.Write(ctx, "SIMs: declare", func(ctx context.Context, tx *db.Tx) error {
			return declare(ctx, tx, acct, declared, reset)
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

func declare(ctx context.Context, tx *db.Tx, acct relay.AccountID, declared map[ICCID]SIM, reset bool) error {
	remainingIccids := slices.Sorted(maps.Keys(declared))
	added := 0
	for round := 0; len(remainingIccids) > 0; round++ {
		if round == declareRounds {
			return relay.Errorf(relay.KindUnavailable, "SIM %s: too many concurrent updates", remainingIccids[0])
		}
		known, fresh, err := decide(ctx, tx, acct, remainingIccids, declared, reset)
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
		added, remainingIccids = added+len(inserted), remainingIccids[:0]
		for _, c := range fresh {
			if !inserted[c.newSim.ICCID] {
				remainingIccids = append(remainingIccids, c.newSim.ICCID)
			}
		}
	}
	return addToCount(ctx, tx, acct, simTable, added)
}

// decide locks the SIMs that exist and returns what becomes of them, if they
// change, and those that are new.
func decide(
	ctx context.Context, tx *db.Tx, acct relay.AccountID, iccids []ICCID, declared map[ICCID]SIM, reset bool,
) (known, fresh []changed, err error) {
	have, err := load(ctx, tx, acct, iccids, " ORDER BY iccid"+forUpdate)
	if err != nil {
		return nil, nil, err
	}
	for _, iccid := range iccids {
		oldSim, found := have[iccid]
		c := changed{oldSim, Declared(oldSim, declared[iccid], reset)}
		switch {
		case !found:
			fresh = append(fresh, c)
		case !reflect.DeepEqual(c.oldSim, c.newSim):
			known = append(known, c)
		}
	}
	return known, fresh, nil
}
