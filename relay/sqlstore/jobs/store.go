package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Store keeps jobs.
type Store struct{ db *sqlstore.DB }

// New returns the store of jobs.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

const insertJob = `
INSERT INTO job (account, id, list, kind, name, doc, state, due, tries, updated, expires, error, result, settled)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, 0, $8, 0, '', '', '')
ON CONFLICT (account, id) DO NOTHING`

const deleteExpiredJob = `
DELETE FROM job WHERE account = $1 AND id = $2 AND expires > 0 AND expires <= $3`

// Create saves a new job, queued and due, in the transaction of a caller. It
// answers false for one whose id exists, which is left alone.
func Create(ctx context.Context, tx *sqlstore.Tx, j job.Job) (created bool, err error) {
	noun := "job " + j.ID + ": create"
	static := j
	static.State, static.Result, static.Error, static.Tries, static.Settled = "", nil, "", 0, nil
	static.UpdatedAt, static.Due = time.Time{}, time.Time{}
	doc, err := sqlstore.Encode(static)
	if err != nil {
		return false, fmt.Errorf("%s: encode: %w", noun, err)
	}
	at := sqlstore.Millis(j.CreatedAt)
	insert := func() (bool, error) {
		n, err := tx.Exec(ctx, noun, insertJob,
			int64(j.Account), j.ID, j.List, string(j.Kind), j.Name, doc, max(at, 1), at)
		return n > 0, err
	}
	if created, err := insert(); created || err != nil {
		return created, err
	}
	n, err := tx.Exec(ctx, noun, deleteExpiredJob, int64(j.Account), j.ID, sqlstore.Millis(tx.Now()))
	if n == 0 || err != nil {
		return false, err
	}
	return insert()
}

// Create saves a new job.
func (s *Store) Create(ctx context.Context, j job.Job) error {
	return s.db.Write(ctx, "job "+j.ID+": create", func(ctx context.Context, tx *sqlstore.Tx) error {
		_, err := Create(ctx, tx, j)
		return err
	})
}

// columns are what scan reads.
const columns = "doc, state, due, tries, updated, error, result, settled"

func scan(row *sql.Rows, j *job.Job) error {
	var doc, state, result, settled string
	var due, updated, tries int64
	var reason string
	if err := row.Scan(&doc, &state, &due, &tries, &updated, &reason, &result, &settled); err != nil {
		return err
	}
	if err := sqlstore.Decode([]byte(doc), j); err != nil {
		return err
	}
	j.State, j.Tries, j.Error = job.State(state), int(tries), reason
	j.Due, j.UpdatedAt = sqlstore.Moment(due), sqlstore.Moment(updated)
	j.Result, j.Settled = raw(result), raw(settled)
	return nil
}

// raw is JSON as it was kept; nil for none.
func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

const selectJob = `
SELECT ` + columns + ` FROM job
WHERE account = $1 AND id = $2 AND (expires = 0 OR expires > $3)`

// Get loads a job.
func (s *Store) Get(ctx context.Context, acct account.ID, id string) (job.Job, error) {
	return get(ctx, s.db, job.Ref{Account: acct, ID: id}, s.db.Now())
}

func get(ctx context.Context, c sqlstore.Conn, r job.Ref, now time.Time) (job.Job, error) {
	return sqlstore.One(ctx, c, "job "+r.ID, selectJob, scan, int64(r.Account), r.ID, sqlstore.Millis(now))
}

const leaseJob = `
UPDATE job SET state = 'processing', due = $1, updated = $2, tries = tries + 1
WHERE account = $3 AND id = $4 AND due > 0 AND due <= $5
RETURNING ` + columns

// Lease takes a job that is due.
func (s *Store) Lease(ctx context.Context, r job.Ref, now, until time.Time) (j job.Job, taken bool, err error) {
	noun := "job " + r.ID + ": lease"
	err = s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		at := sqlstore.Millis(now)
		leased, err := sqlstore.List(ctx, tx, noun, leaseJob, scan, sqlstore.Millis(until), at, int64(r.Account), r.ID, at)
		if taken = len(leased) > 0; taken {
			j = leased[0]
			return nil
		}
		if err == nil {
			j, err = get(ctx, tx, r, tx.Now())
		}
		return err
	})
	if err != nil {
		return job.Job{}, false, err
	}
	return j, taken, nil
}

// A run that waited takes its try back, once: the count is that of the run still.
const finishJob = `
UPDATE job SET state = $1, due = $2, error = $3, updated = $4, expires = $5,
  result = CASE WHEN $6 = '' THEN result ELSE $7 END,
  tries = tries - CASE WHEN tries = $8 THEN 1 ELSE 0 END
WHERE account = $9 AND id = $10 AND state IN ('queued', 'processing')`

// Finish records what a run came to.
func (s *Store) Finish(ctx context.Context, j job.Job, o job.Outcome, now time.Time) error {
	untried, expires := int64(-1), int64(0)
	if o.Waits {
		untried = int64(j.Tries)
	}
	if o.Again.IsZero() && j.Keep > 0 {
		expires = sqlstore.Millis(now.Add(j.Keep))
	}
	_, err := s.db.Exec(ctx, "job "+j.ID+": finish", finishJob,
		string(o.State()), sqlstore.Millis(o.Again), o.Error, sqlstore.Millis(now), expires,
		string(o.Result), string(o.Result), untried, int64(j.Account), j.ID)
	return err
}

const selectDue = `
SELECT account, id FROM (
  SELECT account, id, due, place, row_number() OVER (PARTITION BY account ORDER BY due, place) AS nth
  FROM job WHERE due > 0 AND due <= $1
) oldest
WHERE nth <= $2
ORDER BY due, place`

// Due returns jobs that somebody may work on, of each account at most limit.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]job.Ref, error) {
	return sqlstore.List(ctx, s.db, "jobs: due", selectDue, func(row *sql.Rows, r *job.Ref) error {
		return row.Scan(&r.Account, &r.ID)
	}, sqlstore.Millis(before), int64(limit))
}

// sweepBatch is how many expired jobs one transaction deletes.
const sweepBatch = 5000

const deleteExpired = `
DELETE FROM job WHERE place IN (
  SELECT place FROM job WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked}
)`

// Sweep deletes the jobs that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for {
		n, err := s.db.Exec(ctx, "jobs: sweep", deleteExpired, sqlstore.Millis(now), int64(sweepBatch))
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

// Settled locks a job and returns what it has brought about, in the transaction of
// a caller: nil if nothing was settled or there is no such job.
func Settled(ctx context.Context, tx *sqlstore.Tx, r job.Ref) (json.RawMessage, error) {
	settled, err := sqlstore.Value[string](ctx, tx, "job "+r.ID,
		"SELECT settled FROM job WHERE account = $1 AND id = $2 {for update}", int64(r.Account), r.ID)
	if relay.KindOf(err) == relay.KindNotFound {
		return nil, nil
	}
	return raw(settled), err
}

// Settle saves what a job has brought about, in the transaction that does it and
// has asked Settled. A job that is not there is passed over.
func Settle(ctx context.Context, tx *sqlstore.Tx, r job.Ref, settled json.RawMessage) error {
	_, err := tx.Exec(ctx, "job "+r.ID+": settle",
		"UPDATE job SET settled = $1 WHERE account = $2 AND id = $3", string(settled), int64(r.Account), r.ID)
	return err
}
