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

// Store stores jobs. A lease sets the time at which the job is due again, in one conditional
// UPDATE. The functions Create, LockSettlement and Settle are for transactions that also save other
// records. A Store is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of jobs.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Create saves a new job, queued and due, in the transaction of the caller. If a job with the
// id exists, Create changes nothing and returns false.
func Create(ctx context.Context, tx *db.Tx, j Job) (created bool, err error) {
	const (
		insert = `
			INSERT INTO job (account, id, list, kind, name, doc, state, due, tries, updated, expires, error, result, settled)
			VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, 0, $8, 0, '', '', '')
			ON CONFLICT (account, id) DO NOTHING`
		deleteExpired = `
			DELETE FROM job
			WHERE account = $1
			  AND id = $2
			  AND expires > 0
			  AND expires <= $3`
	)
	label := "job " + j.ID + ": create"
	document := j
	document.State, document.Result, document.Error, document.Tries, document.Settlement = "", nil, "", 0, nil
	document.UpdatedAt, document.Due = time.Time{}, time.Time{}
	createdAt := db.Millis(j.CreatedAt)
	args := []any{j.Account, j.ID, j.List, j.Kind, j.Name, db.JSON(document), max(createdAt, 1), createdAt}
	n, err := tx.Exec(ctx, label, insert, args...)
	if err != nil || n > 0 {
		return n > 0, err
	}
	// The id may belong to a job that has expired and is not deleted yet.
	n, err = tx.Exec(ctx, label, deleteExpired, j.Account, j.ID, tx.Now())
	if err != nil || n == 0 {
		return false, err
	}
	n, err = tx.Exec(ctx, label, insert, args...)
	return n > 0, err
}

// Create saves a new job, queued and due. If a job with the id exists, it changes nothing.
func (s *Store) Create(ctx context.Context, j Job) error {
	return s.db.Write(ctx, "job "+j.ID+": create", func(ctx context.Context, tx *db.Tx) error {
		_, err := Create(ctx, tx, j)
		return err
	})
}

// columns are the columns that fields reads. doc is first because the other columns replace
// values of the document.
const columns = "doc, state, due, tries, updated, error, result, settled"

// fields returns pointers for columns.
func fields(j *Job) []any {
	return []any{
		db.JSON(j), &j.State, db.Time(&j.Due), &j.Tries, db.Time(&j.UpdatedAt), &j.Error,
		db.JSON(&j.Result), db.JSON(&j.Settlement),
	}
}

// Get loads a job; relay.KindNotFound if the account has no job with the id.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id string) (Job, error) {
	return get(ctx, s.db, Ref{Account: acct, ID: id}, s.db.Now())
}

func get(ctx context.Context, c db.Conn, r Ref, now time.Time) (Job, error) {
	const query = `
		SELECT ` + columns + `
		FROM job
		WHERE account = $1
		  AND id = $2
		  AND (expires = 0 OR expires > $3)`
	return db.One(ctx, c, "job "+r.ID, query, fields, r.Account, r.ID, now)
}

// leaseJob leases a job. "due + 0" keeps the engine on the primary key instead of the index of
// due jobs.
const leaseJob = `
	UPDATE job
	SET state = 'processing', due = $1, updated = $2, tries = tries + 1
	WHERE account = $3
	  AND id = $4
	  AND due + 0 BETWEEN 1 AND $5
	RETURNING ` + columns

// Lease reserves a job for the caller until a time, and sets its state to processing. It
// returns false and the current job if the job has ended or is not due, and relay.KindNotFound
// if there is no such job.
func (s *Store) Lease(ctx context.Context, r Ref, now, until time.Time) (j Job, leased bool, err error) {
	label := "job " + r.ID + ": lease"
	j, err = db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Job, error) {
		for try := 1; ; try++ {
			rows, err := db.List(ctx, tx, label, leaseJob, fields, until, now, r.Account, r.ID, now)
			if err != nil {
				return Job{}, err
			}
			if leased = len(rows) > 0; leased {
				return rows[0], nil
			}
			current, err := get(ctx, tx, r, tx.Now())
			isDue := err == nil && !current.Due.IsZero() && !current.Due.After(now)
			if !isDue || try == 2 {
				return current, err
			}
			// Between the two statements the job was created or became due.
		}
	})
	return j, leased && err == nil, err
}

// Finish records the outcome of a run. A job that has ended is left unchanged.
func (s *Store) Finish(ctx context.Context, j Job, o Outcome, now time.Time) error {
	// A run that only waited does not count as a try. The comparison with the try of this
	// run makes the statement safe to repeat.
	const statement = `
		UPDATE job
		SET state = $1,
		    due = $2,
		    error = $3,
		    updated = $4,
		    expires = $5,
		    result = CASE WHEN $6 = '' THEN result ELSE $7 END,
		    tries = tries - CASE WHEN tries = $8 THEN 1 ELSE 0 END
		WHERE account = $9
		  AND id = $10
		  AND state IN ('queued', 'processing')`
	uncountedTry, expires := -1, time.Time{}
	if o.Waits {
		uncountedTry = j.Tries
	}
	if o.RetryAt.IsZero() && j.Retention > 0 {
		expires = now.Add(j.Retention)
	}
	result := string(o.Result)
	return s.db.Run(ctx, "job "+j.ID+": finish", statement,
		o.State(), o.RetryAt, o.Error, now, expires, result, result, uncountedTry, j.Account, j.ID)
}

// dueJob is a job that is due.
type dueJob struct {
	Ref
	due   int64 // Unix time in milliseconds
	place int64 // position in the order of creation
}

const (
	dueAccounts = `
		WITH RECURSIVE waiting(account) AS (
		  SELECT CAST(-1 AS BIGINT)
		  UNION ALL
		  SELECT (
		    SELECT job.account
		    FROM job
		    WHERE job.due > 0 AND job.account > waiting.account
		    ORDER BY job.account
		    LIMIT 1
		  )
		  FROM waiting
		  WHERE waiting.account IS NOT NULL
		)
		SELECT account
		FROM waiting
		WHERE account >= 0
		  AND (SELECT 1 FROM job WHERE job.account = waiting.account AND job.due > 0 AND job.due <= $1 LIMIT 1) = 1`
	dueOfAccount = `
		SELECT account, id, due, place
		FROM job
		WHERE account = $1
		  AND due > 0
		  AND due <= $2
		ORDER BY due, place
		LIMIT $3`
)

// Due returns the jobs that are due at a time, the oldest first, at most limit of each
// account. It reads the due jobs, and one index entry for each account with unfinished jobs.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	const label = "jobs: due"
	accounts, err := db.Values[relay.AccountID](ctx, s.db, label, dueAccounts, now)
	if err != nil {
		return nil, err
	}
	var jobs []dueJob
	for _, acct := range accounts {
		accountJobs, err := db.List(ctx, s.db, label, dueOfAccount, func(j *dueJob) []any {
			return []any{&j.Account, &j.ID, &j.due, &j.place}
		}, acct, now, limit)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, accountJobs...)
	}
	slices.SortFunc(jobs, func(a, b dueJob) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.place, b.place)) })
	refs := make([]Ref, len(jobs))
	for i := range jobs {
		refs[i] = jobs[i].Ref
	}
	return refs, nil
}

// Sweep deletes the jobs that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "jobs: sweep", "job", "place", "expires", now)
}

// LockSettlement locks a job in the transaction of the caller and returns its Settlement; nil
// if the job is not settled or does not exist.
func LockSettlement(ctx context.Context, tx *db.Tx, r Ref) (json.RawMessage, error) {
	const query = `
		SELECT settled
		FROM job
		WHERE account = $1
		  AND id = $2
		{for update}`
	return db.OrZero(db.One(ctx, tx, "job "+r.ID, query, db.Doc[json.RawMessage], r.Account, r.ID))
}

// Settle saves the Settlement of a job in the transaction that has called LockSettlement. It
// does nothing if the job does not exist.
func Settle(ctx context.Context, tx *db.Tx, r Ref, settlement json.RawMessage) error {
	const statement = `
		UPDATE job
		SET settled = $1
		WHERE account = $2
		  AND id = $3`
	return tx.Run(ctx, "job "+r.ID+": settle", statement, string(settlement), r.Account, r.ID)
}

// Filter selects the jobs of a list; an empty field selects every value.
type Filter struct {
	List        string // required
	State       State
	Kind        Kind
	Name        string // the whole name
	NewestFirst bool   // otherwise the oldest job is first
}

// List returns up to limit jobs of a list from an offset, in the order of their creation, and
// the total number of jobs that the filter selects.
func (s *Store) List(ctx context.Context, acct relay.AccountID, f Filter, offset, limit int) ([]Job, int, error) {
	var w db.Where
	w.And("account = ?", acct)
	w.And("list = ?", f.List)
	w.And("list <> ''")
	w.And("(expires = 0 OR expires > ?)", s.db.Now())
	state, kind := "state", "kind"
	if f.Name != "" {
		// Few jobs have a name. The concatenations keep the engine on the index of names.
		w.And("name <> ''")
		state, kind = "state || ''", "kind || ''"
	}
	w.AndSet("name = ?", f.Name)
	w.AndSet(kind+" = ?", f.Kind)
	w.AndSet(state+" = ?", f.State)
	total, err := db.Value[int](ctx, s.db, "jobs: count", "SELECT count(*) FROM job"+w.String(), w.Args()...)
	if err != nil || offset >= total {
		return nil, total, err
	}
	order := "place"
	if f.NewestFirst {
		order = "place DESC"
	}
	// The inner query skips the offset in an index, without reading jobs.
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
	jobs, err := db.List(ctx, s.db, "jobs: list", query, fields, w.Args()...)
	return jobs, total, err
}

// Search selects jobs of one or all accounts; an empty field selects every value.
type Search struct {
	Account     relay.AccountID
	State       State
	Kind        Kind
	BeforePlace int64 // Place of the last job of the previous page; 0 for the first page
	Limit       int
}

// FoundJob is a result of Find. Place is the position of the job in the order of creation.
type FoundJob struct {
	Place int64
	Job
}

// Find returns jobs of one or all accounts, the newest first.
func (s *Store) Find(ctx context.Context, f Search) ([]FoundJob, error) {
	var w db.Where
	w.And("(expires = 0 OR expires > ?)", s.db.Now())
	w.AndSet("place < ?", f.BeforePlace)
	w.AndSet("account = ?", f.Account)
	w.AndSet("state = ?", f.State)
	w.AndSet("kind = ?", f.Kind)
	return db.Page(ctx, s.db, "jobs: find", "SELECT place, "+columns+" FROM job", &w, "place DESC", f.Limit, func(j *FoundJob) []any {
		return append([]any{&j.Place}, fields(&j.Job)...)
	})
}
