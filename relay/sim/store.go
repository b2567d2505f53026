package sim

import (
	"cmp"
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

// SIMs stores SIMs. A SIM and the job that changes it are saved in one transaction.
type SIMs struct{ db *db.DB }

// NewSIMs returns the store of SIMs.
func NewSIMs(database *db.DB) *SIMs { return &SIMs{db: database} }

// Get loads a SIM; relay.KindNotFound if the account does not have the SIM.
func (s *SIMs) Get(ctx context.Context, acct relay.AccountID, iccid ICCID) (SIM, error) {
	return loadOne(ctx, s.db, acct, iccid, "")
}

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct relay.AccountID, iccids []ICCID) (map[ICCID]SIM, error) {
	return load(ctx, s.db, acct, iccids, "")
}

// Change calls change with a SIM and saves the result, except its ICCID and pool. It returns
// relay.KindNotFound if the account does not have the SIM, and the error of change.
func (s *SIMs) Change(ctx context.Context, acct relay.AccountID, iccid ICCID, change func(*SIM) error) (SIM, error) {
	return db.Transact(ctx, s.db, "SIM "+string(iccid), func(ctx context.Context, tx *db.Tx) (SIM, error) {
		return changeOne(ctx, tx, acct, iccid, change)
	})
}

func changeOne(ctx context.Context, tx *db.Tx, acct relay.AccountID, iccid ICCID, change func(*SIM) error) (SIM, error) {
	oldSim, err := loadOne(ctx, tx, acct, iccid, forUpdate)
	if err != nil {
		return SIM{}, err
	}
	newSim := oldSim
	newSim.Recipients = slices.Clone(oldSim.Recipients)
	if err := change(&newSim); err != nil {
		return SIM{}, err
	}
	newSim.ICCID, newSim.Pool = oldSim.ICCID, oldSim.Pool
	if reflect.DeepEqual(oldSim, newSim) {
		return newSim, nil
	}
	return newSim, update(ctx, tx, acct, []simChange{{oldSim, newSim}})
}

// Delete deletes a SIM; relay.KindNotFound if there is none.
func (s *SIMs) Delete(ctx context.Context, acct relay.AccountID, iccid ICCID) error {
	label := "SIM " + string(iccid)
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := db.MustChange(ctx, tx, label, "DELETE FROM sim WHERE account = $1 AND iccid = $2", acct, iccid); err != nil {
			return err
		}
		return addToCount(ctx, tx, acct, simTable, -1)
	})
}

// simTable is the name of the table of SIMs, and of their list in sim_count.
const simTable = "sim"

func simsOf(acct relay.AccountID, scope Scope) list {
	return list{table: simTable, account: acct, scope: scope, columns: Columns()}
}

// List returns a page of the SIMs of a scope and their total number.
func (s *SIMs) List(ctx context.Context, acct relay.AccountID, scope Scope, q Query) ([]SIM, int, error) {
	return readPage(ctx, s.db, simsOf(acct, scope), q, columns, simFields)
}

// Scan returns up to limit ICCIDs of a scope after an ICCID, in order.
func (s *SIMs) Scan(ctx context.Context, acct relay.AccountID, scope Scope, iccid ICCID, limit int) ([]ICCID, error) {
	conditions := simsOf(acct, scope).conditions(nil)
	conditions.And("iccid > ?", iccid)
	return db.Page(ctx, s.db, "SIMs", "SELECT iccid FROM sim", conditions, "iccid", limit, db.SingleColumn[ICCID])
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
	After Ref // the last SIM of the previous page
	Limit int
}

// FoundSIM is a result of a search: a SIM and its account.
type FoundSIM struct {
	Account relay.AccountID
	SIM
}

// Find returns SIMs of one or all accounts, by account and ICCID. If few SIMs contain
// the text, Find reads all SIMs.
func (s *SIMs) Find(ctx context.Context, f Search) ([]FoundSIM, error) {
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
	return db.Page(ctx, s.db, "SIMs", "SELECT "+columns+" FROM sim", &w, "account, iccid", f.Limit, func(f *FoundSIM) []any {
		return readOwned(&f.Account, &f.SIM)
	})
}

// Begin saves a changed SIM together with a new job. If the job exists, Begin does nothing: an
// earlier attempt has saved both, and the job may have changed the SIM since.
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

// Settle saves a changed SIM and marks its job as settled with the result of change. If the job is
// already settled, Settle changes nothing and returns the saved result.
func (s *SIMs) Settle(
	ctx context.Context, j job.Job, iccid ICCID, change func(*SIM) (json.RawMessage, error),
) (json.RawMessage, error) {
	ref, label := job.Ref{Account: j.Account, ID: j.ID}, "job "+j.ID+": settle"
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (json.RawMessage, error) {
		settlement, err := job.LockSettlement(ctx, tx, ref)
		if err != nil || settlement != nil {
			return settlement, err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, func(sim *SIM) (err error) {
			settlement, err = change(sim)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label, err)
		}
		return settlement, job.Settle(ctx, tx, ref, settlement)
	})
}

// declareBatch is the largest number of SIMs that one transaction declares.
const declareBatch = 2000

// declareRounds is the largest number of attempts to declare SIMs that other gateways create
// at the same time.
const declareRounds = 10

// Declare saves the SIMs of an inventory, see ApplyDeclaration. Among SIMs with the same ICCID,
// Declare saves the last one.
func (s *SIMs) Declare(ctx context.Context, acct relay.AccountID, sims []SIM, reset bool) error {
	for chunk := range slices.Chunk(sims, declareBatch) {
		declared := db.IndexBy(chunk, func(s SIM) ICCID { return s.ICCID })
		err := s.db.Write(ctx, "SIMs: declare", func(ctx context.Context, tx *db.Tx) error {
			remaining, added := slices.Sorted(maps.Keys(declared)), 0
			for round := 0; len(remaining) > 0; round++ {
				if round == declareRounds {
					return relay.Errorf(relay.KindUnavailable, "SIM %s: too many concurrent updates", remaining[0])
				}
				// 1. Lock the SIMs that exist, and find the changes and the new SIMs.
				stored, err := load(ctx, tx, acct, remaining, " ORDER BY iccid"+forUpdate)
				if err != nil {
					return err
				}
				var updates, inserts []simChange
				for _, iccid := range remaining {
					oldSim, found := stored[iccid]
					c := simChange{oldSim, ApplyDeclaration(oldSim, declared[iccid], reset)}
					switch {
					case !found:
						inserts = append(inserts, c)
					case !reflect.DeepEqual(c.oldSim, c.newSim):
						updates = append(updates, c)
					}
				}
				// 2. Save them. SIMs that another gateway has just created remain for the next round.
				if err := update(ctx, tx, acct, updates); err != nil {
					return err
				}
				inserted, err := insert(ctx, tx, acct, inserts)
				if err != nil {
					return err
				}
				added, remaining = added+len(inserted), remaining[:0]
				for _, c := range inserts {
					if !inserted[c.newSim.ICCID] {
						remaining = append(remaining, c.newSim.ICCID)
					}
				}
			}
			return addToCount(ctx, tx, acct, simTable, added)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const columns = `account, iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
  pin, pin2, puk, puk2, monthly, warning, cap, recipients`

func fields(acct *relay.AccountID, s *SIM) []any {
	code := func(c *string) any { return db.SealedOr(&s.Undecryptable, c, simTable, acct) }
	return []any{
		acct, &s.ICCID, &s.IMSI, &s.MSISDN, &s.Pool, &s.Subscriber, &s.State, &s.RequestedState, &s.Job, &s.Service4G, &s.Service5G,
		code(&s.Codes.PIN), code(&s.Codes.PIN2), code(&s.Codes.PUK), code(&s.Codes.PUK2),
		&s.Limit.Monthly, &s.Limit.Warning, &s.Limit.Action,
		db.JSON(&s.Recipients),
	}
}

// simFields returns pointers for columns, and sets the defaults of the SIM.
func simFields(s *SIM) []any { return readOwned(new(relay.AccountID), s) }

// readOwned does the same as read, but with a pointer to the account.
func readOwned(acct *relay.AccountID, s *SIM) []any {
	return append(fields(acct, s), func() {
		s.RequestedState, s.Limit.Action = cmp.Or(s.RequestedState, s.State), cmp.Or(s.Limit.Action, NoAction)
	})
}

func batchOf(acct relay.AccountID, changes []simChange) *db.Batch {
	return db.BatchOf(columns+", undecryptable", changes, func(c *simChange) []any {
		values := fields(&acct, &c.newSim)
		if len(c.newSim.Recipients) == 0 {
			values[len(values)-1] = ""
		}
		return append(values, c.oldSim.Undecryptable)
	})
}

// simChange is a SIM before and after a change; oldSim is the zero SIM for a new SIM.
type simChange struct{ oldSim, newSim SIM }

// forUpdate at the end of a query locks the SIMs that it reads.
const forUpdate = " {for update}"

// load loads the SIMs of an account by ICCID, and omits missing ones. lock is "" or ends in
// forUpdate.
func load(ctx context.Context, c db.Conn, acct relay.AccountID, iccids []ICCID, lock string) (map[ICCID]SIM, error) {
	sims, err := db.List(ctx, c, "SIMs", `
SELECT `+columns+` FROM sim
WHERE (account, iccid) IN (SELECT account, iccid FROM batch)`+lock, simFields, db.AccountColumn(acct, "iccid", iccids))
	return db.IndexBy(sims, func(s SIM) ICCID { return s.ICCID }), err
}

// loadOne loads a SIM; relay.KindNotFound if there is none. lock is "" or forUpdate.
func loadOne(ctx context.Context, c db.Conn, acct relay.AccountID, iccid ICCID, lock string) (SIM, error) {
	return db.One(ctx, c, "SIM "+string(iccid), `
SELECT `+columns+` FROM sim
WHERE account = $1 AND iccid = $2`+lock, simFields, acct, iccid)
}

func insert(ctx context.Context, tx *db.Tx, acct relay.AccountID, changes []simChange) (map[ICCID]bool, error) {
	return db.Map[ICCID, bool](ctx, tx, "SIMs", `
INSERT INTO sim (`+columns+`, detached)
SELECT `+columns+`, '' FROM batch WHERE true
ON CONFLICT (account, iccid) DO NOTHING
RETURNING iccid, 1`, batchOf(acct, changes))
}

// updateMatched ends an UPDATE of the SIMs of a batch.
const updateMatched = `
FROM batch WHERE sim.account = batch.account AND sim.iccid = batch.iccid`

// update saves locked SIMs without changing their pools. A code that cannot be decrypted is kept
// unless a new one is declared.
func update(ctx context.Context, tx *db.Tx, acct relay.AccountID, changes []simChange) error {
	const statement = `
UPDATE sim SET imsi = batch.imsi, msisdn = batch.msisdn, subscriber = batch.subscriber,
  state = batch.state, requested = batch.requested, job = batch.job,
  service_4g = batch.service_4g, service_5g = batch.service_5g,
  pin = CASE WHEN batch.undecryptable = 1 AND batch.pin = '' THEN sim.pin ELSE batch.pin END,
  pin2 = CASE WHEN batch.undecryptable = 1 AND batch.pin2 = '' THEN sim.pin2 ELSE batch.pin2 END,
  puk = CASE WHEN batch.undecryptable = 1 AND batch.puk = '' THEN sim.puk ELSE batch.puk END,
  puk2 = CASE WHEN batch.undecryptable = 1 AND batch.puk2 = '' THEN sim.puk2 ELSE batch.puk2 END,
  monthly = batch.monthly, warning = batch.warning, cap = batch.cap, recipients = batch.recipients` + updateMatched
	return tx.Run(ctx, "SIMs", statement, batchOf(acct, changes))
}

// StateCount is the number of SIMs of an account in a state.
type StateCount struct {
	Account relay.AccountID
	State   State
	SIMs    int64
}

// CountByState counts the SIMs of all accounts.
func (s *SIMs) CountByState(ctx context.Context) ([]StateCount, error) {
	const statement = `
		SELECT account, state, COUNT(*)
		FROM sim
		GROUP BY account, state`
	fields := func(c *StateCount) []any { return []any{&c.Account, &c.State, &c.SIMs} }
	return db.List(ctx, s.db, "SIMs by state", statement, fields)
}
