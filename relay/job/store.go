package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Filter selects jobs of a list; zero fields select all.
type Filter struct {
	List  string // needed
	State State
	Kind  Kind
	Name  string // the whole name
	// Newest has the newest first; else the oldest.
	Newest bool
}

// Search selects jobs of one or all accounts, in lists or not; empty fields select all.
type Search struct {
	Account relay.AccountID
	State   State
	Kind    Kind
	Before  int64 // place of the last of the page before; 0: none
	Limit   int
}

// Found is a job of a search; Place is its number in the order of creation.
type Found struct {
	Place int64
	Job
}

// Store keeps jobs.
type Store struct{ db *db.DB }

// New returns the store of jobs.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Create saves a new job, queued and due, in the transaction of a caller. It
// answers false for one whose id exists, which is left alone.
func Create(ctx context.Context, tx *db.Tx, j Job) (created bool, err error) {
	noun := "job " + j.ID + ": create"
	static := j
	static.State, static.Result, static.Error, static.Tries, static.Settled = "", nil, "", 0, nil
	static.UpdatedAt, static.Due = time.Time{}, time.Time{}
	at := db.Millis(j.CreatedAt)
	insert := func() (bool, error) {
		n, err := tx.Exec(ctx, noun, `
INSERT INTO job (account, id, list, kind, name, doc, state, due, tries, updated, expires, error, result, settled)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, 0, $8, 0, '', '', '')
ON CONFLICT (account, id) DO NOTHING`, j.Account, j.ID, j.List, j.Kind, j.Name, db.JSON(static), max(at, 1), at)
		return n > 0, err
	}
	if created, err := insert(); created || err != nil {
		return created, err
	}
	n, err := tx.Exec(ctx, noun, `
DELETE FROM job WHERE account = $1 AND id = $2 AND expires > 0 AND expires <= $3`, j.Account, j.ID, tx.Now())
	if n == 0 || err != nil {
		return false, err
	}
	return insert()
}

// Create saves a new job.
func (s *Store) Create(ctx context.Context, j Job) error {
	return s.db.Write(ctx, "job "+j.ID+": create", func(ctx context.Context, tx *db.Tx) error {
		_, err := Create(ctx, tx, j)
		return err
	})
}

// columns are the columns that fields reads.
const columns = "doc, state, due, tries, updated, error, result, settled"

// fields are columns; doc comes first, as the others count.
func fields(j *Job) []any {
	return []any{
		db.JSON(j), &j.State, db.Time(&j.Due), &j.Tries, db.Time(&j.UpdatedAt), &j.Error,
		db.JSON(&j.Result), db.JSON(&j.Settled),
	}
}

// Get loads a job.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id string) (Job, error) {
	return get(ctx, s.db, Ref{Account: acct, ID: id}, s.db.Now())
}

func get(ctx context.Context, c db.Conn, r Ref, now time.Time) (Job, error) {
	return db.One(ctx, c, "job "+r.ID, `
SELECT `+columns+` FROM job
WHERE account = $1 AND id = $2 AND (expires = 0 OR expires > $3)`, fields, r.Account, r.ID, now)
}

// Lease takes a job that is due.
func (s *Store) Lease(ctx context.Context, r Ref, now, until time.Time) (j Job, taken bool, err error) {
	noun := "job " + r.ID + ": lease"
	j, err = db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (Job, error) {
		one, leased, err := lease(ctx, tx, noun, r, now, until)
		// Between the two statements it may have been created, or become due.
		if err == nil && !leased && !one.Due.IsZero() && !one.Due.After(now) {
			one, leased, err = lease(ctx, tx, noun, r, now, until)
		}
		taken = leased
		return one, err
	})
	return j, taken && err == nil, err
}

// leaseOne finds the job by its key: the sum keeps the engine from the index of what is due.
const leaseOne = `
UPDATE job SET state = 'processing', due = $1, updated = $2, tries = tries + 1
WHERE account = $3 AND id = $4 AND due + 0 BETWEEN 1 AND $5
RETURNING ` + columns

// lease takes a job, or returns it as it stands.
func lease(ctx context.Context, tx *db.Tx, noun string, r Ref, now, until time.Time) (j Job, taken bool, err error) {
	leased, err := db.List(ctx, tx, noun, leaseOne, fields, until, now, r.Account, r.ID, now)
	if err != nil {
		return Job{}, false, err
	}
	if len(leased) > 0 {
		return leased[0], true, nil
	}
	j, err = get(ctx, tx, r, tx.Now())
	return j, false, err
}

// Finish records the outcome of a run.
func (s *Store) Finish(ctx context.Context, j Job, o Outcome, now time.Time) error {
	untried, expires := -1, time.Time{}
	if o.Waits {
		untried = j.Tries
	}
	if o.Again.IsZero() && j.Keep > 0 {
		expires = now.Add(j.Keep)
	}
	result := string(o.Result)
	// A run that waited takes its try back, once: the count is that of the run still.
	return s.db.Run(ctx, "job "+j.ID+": finish", `
UPDATE job SET state = $1, due = $2, error = $3, updated = $4, expires = $5,
  result = CASE WHEN $6 = '' THEN result ELSE $7 END,
  tries = tries - CASE WHEN tries = $8 THEN 1 ELSE 0 END
WHERE account = $9 AND id = $10 AND state IN ('queued', 'processing')`,
		o.State(), o.Again, o.Error, now, expires, result, result, untried, j.Account, j.ID)
}

// Due returns jobs that may run now, at most limit of each account: it reads no others,
// one step in the index for each account with jobs that have not ended.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]Ref, error) {
	const noun = "jobs: due"
	accounts, err := db.Values[relay.AccountID](ctx, s.db, noun, dueAccounts, before)
	var all []dueJob
	for i := 0; i < len(accounts) && err == nil; i++ {
		var some []dueJob
		some, err = db.List(ctx, s.db, noun, dueOfAccount, (*dueJob).fields, accounts[i], before, limit)
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b dueJob) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.place, b.place)) })
	refs := make([]Ref, len(all))
	for i := range all {
		refs[i] = all[i].Ref
	}
	return refs, err
}

const (
	dueAccounts = `
WITH RECURSIVE waiting(account) AS (
  SELECT CAST(-1 AS BIGINT)
  UNION ALL
  SELECT (SELECT job.account FROM job WHERE job.due > 0 AND job.account > waiting.account ORDER BY job.account LIMIT 1)
  FROM waiting WHERE waiting.account IS NOT NULL)
SELECT account FROM waiting WHERE account >= 0
  AND (SELECT 1 FROM job WHERE job.account = waiting.account AND job.due > 0 AND job.due <= $1 LIMIT 1) = 1`

	dueOfAccount = `
SELECT account, id, due, place FROM job WHERE account = $1 AND due > 0 AND due <= $2 ORDER BY due, place LIMIT $3`
)

// dueJob is a job that is due, with its place in the order of those.
type dueJob struct {
	Ref
	due, place int64
}

func (d *dueJob) fields() []any { return []any{&d.Account, &d.ID, &d.due, &d.place} }

// Sweep deletes the jobs that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "jobs: sweep", "job", "place", "expires", now)
}

// Settled locks a job and returns what it has brought about, in the transaction of
// a caller: nil if nothing was settled or there is no such job.
func Settled(ctx context.Context, tx *db.Tx, r Ref) (json.RawMessage, error) {
	return db.OrZero(db.One(ctx, tx, "job "+r.ID,
		"SELECT settled FROM job WHERE account = $1 AND id = $2 {for update}", db.Doc[json.RawMessage], r.Account, r.ID))
}

// Settle saves what a job has brought about, in the transaction that does it and
// has asked Settled. A job that is not there is passed over.
func Settle(ctx context.Context, tx *db.Tx, r Ref, settled json.RawMessage) error {
	return tx.Run(ctx, "job "+r.ID+": settle",
		"UPDATE job SET settled = $1 WHERE account = $2 AND id = $3", string(settled), r.Account, r.ID)
}

// List returns jobs in the order of their creation.
func (s *Store) List(ctx context.Context, acct relay.AccountID, f Filter, offset, limit int) ([]Job, int, error) {
	w := selected(acct, f, s.db.Now())
	total, err := db.Value[int](ctx, s.db, "jobs: count", "SELECT count(*) FROM job"+w.String(), w.Args()...)
	if err != nil || offset >= total {
		return nil, total, err
	}
	order := "place"
	if f.Newest {
		order = "place DESC"
	}
	// The places come first: OFFSET then skips entries of an index instead of jobs.
	const statement = `
		SELECT %[1]s
		FROM (
		  SELECT place AS page_place
		  FROM job
		  %[2]s
		  ORDER BY %[3]s
		  LIMIT %[4]s
		  OFFSET %[5]s
		) AS page
		CROSS JOIN job
		WHERE place = page_place
		ORDER BY %[3]s`
	query := fmt.Sprintf(statement, columns, &w, order, w.Arg(limit), w.Arg(offset))
	found, err := db.List(ctx, s.db, "jobs: list", query, fields, w.Args()...)
	return found, total, err
}

// Find returns jobs of one or all accounts, newest first.
func (s *Store) Find(ctx context.Context, f Search) ([]Found, error) {
	var w db.Where
	w.And("(expires = 0 OR expires > ?)", s.db.Now())
	w.AndSet("place < ?", f.Before)
	w.AndSet("account = ?", f.Account)
	w.AndSet("state = ?", f.State)
	w.AndSet("kind = ?", f.Kind)
	return db.Page(ctx, s.db, "jobs: find", "SELECT place, "+columns+" FROM job", &w, "place DESC", f.Limit, func(j *Found) []any {
		return append([]any{&j.Place}, fields(&j.Job)...)
	})
}

// selected is the condition of a filter. Few jobs have a name: its index leads to them,
// and no other one is read.
func selected(acct relay.AccountID, f Filter, now time.Time) (w db.Where) {
	w.And("account = ?", acct)
	w.And("list = ?", f.List)
	w.And("list <> ''")
	w.And("(expires = 0 OR expires > ?)", now)
	state, kind := "state", "kind"
	if f.Name != "" {
		w.And("name <> ''")
		state, kind = "state || ''", "kind || ''"
	}
	w.AndSet("name = ?", f.Name)
	w.AndSet(kind+" = ?", f.Kind)
	w.AndSet(state+" = ?", f.State)
	return w
}
