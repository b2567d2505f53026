package ledgers

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	setHome = `
INSERT INTO ledger_home (token, account) VALUES ($1, $2)
ON CONFLICT (token) DO UPDATE SET account = excluded.account`

	readHome = `
SELECT account FROM ledger_home WHERE token = $1`

	readToken = `
SELECT doc, claimed FROM ledger_token WHERE account = $1 AND id = $2`

	readAppended = `
SELECT metadata FROM ledger_entry
WHERE account = $1 AND token = $2 AND metadata <> ''
ORDER BY sequence`

	insertToken = `
INSERT INTO ledger_token (account, id, claimed, doc) VALUES ($1, $2, 0, $3)
ON CONFLICT (account, id) DO NOTHING`

	lockToken = `
SELECT claimed FROM ledger_token WHERE account = $1 AND id = $2 {for update}`

	countClaim = `
UPDATE ledger_token SET claimed = claimed + 1 WHERE account = $1 AND id = $2`

	jobEntries = `
SELECT COUNT(*) FROM ledger_entry WHERE account = $1 AND token = $2 AND job = $3`
)

// SetHome notes the account of a token.
func (s *Store) SetHome(ctx context.Context, tokenID string, acct account.ID) error {
	_, err := s.db.Exec(ctx, "token "+tokenID, setHome, tokenID, int64(acct))
	return err
}

// Home returns the account of a token.
func (s *Store) Home(ctx context.Context, tokenID string) (account.ID, error) {
	id, err := sqlstore.Value[int64](ctx, s.db, "token "+tokenID, readHome, tokenID)
	return account.ID(id), err
}

// Token loads a token.
func (s *Store) Token(ctx context.Context, acct account.ID, tokenID string) (ledger.Token, error) {
	t, err := sqlstore.One(ctx, s.db, "token "+tokenID, readToken, scanToken, int64(acct), tokenID)
	if err != nil {
		return ledger.Token{}, err
	}
	appended, err := sqlstore.Values[[]byte](ctx, s.db, "token "+tokenID, readAppended, int64(acct), tokenID)
	for _, object := range appended {
		t.Appended = append(t.Appended, object)
	}
	return t, err
}

func scanToken(row *sql.Rows, t *ledger.Token) error {
	var doc []byte
	var claimed int64
	if err := row.Scan(&doc, &claimed); err != nil {
		return err
	}
	err := sqlstore.Decode(doc, t)
	t.Claimed = claimed
	return err
}

// Generate saves a new token and its entry. A token that exists is left alone.
func (s *Store) Generate(ctx context.Context, acct account.ID, t ledger.Token, entry []byte) error {
	noun := "token " + t.ID
	doc, err := sqlstore.Encode(t)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", noun, err)
	}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		added, err := tx.Exec(ctx, noun, insertToken, int64(acct), t.ID, doc)
		if err != nil || added == 0 {
			return err
		}
		return addEntry(ctx, tx, acct, newEntry{token: t, bytes: entry})
	})
}

// Claim counts one claim of a token. That a job has claimed is its entry: it comes
// to the same when it runs again. One that was refused is refused again, since
// claims and time never come back.
func (s *Store) Claim(ctx context.Context, acct account.ID, c ledger.Claim) (ledger.ClaimResult, error) {
	var result ledger.ClaimResult
	err := s.db.Write(ctx, "token "+c.Token.ID, func(ctx context.Context, tx *sqlstore.Tx) error {
		r, err := claim(ctx, tx, acct, c)
		result = r
		return err
	})
	if err != nil {
		return "", err
	}
	return result, nil
}

func claim(ctx context.Context, tx *sqlstore.Tx, acct account.ID, c ledger.Claim) (ledger.ClaimResult, error) {
	claimed, before, err := lock(ctx, tx, acct, c.Token, c.JobID)
	switch {
	case err != nil:
		return "", err
	case before:
		return ledger.ClaimCounted, nil
	case !c.Token.Valid(c.Now):
		return ledger.ClaimExpired, nil
	case c.Token.Limit != 0 && claimed >= c.Token.Limit:
		return ledger.ClaimExhausted, nil
	}
	if _, err := tx.Exec(ctx, "token "+c.Token.ID, countClaim, int64(acct), c.Token.ID); err != nil {
		return "", err
	}
	entry := c.Before + strconv.FormatInt(claimed+1, 10) + c.After
	return ledger.ClaimCounted, addEntry(ctx, tx, acct, newEntry{token: c.Token, job: c.JobID, bytes: []byte(entry)})
}

// lock locks a token, and returns how often it was claimed and whether the job has
// claimed or annotated it before.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, t ledger.Token, job string) (claimed int64, before bool, err error) {
	if claimed, err = sqlstore.Value[int64](ctx, tx, "token "+t.ID, lockToken, int64(acct), t.ID); err != nil {
		return 0, false, err
	}
	n, err := sqlstore.Value[int64](ctx, tx, "token "+t.ID, jobEntries, int64(acct), t.ID, job)
	return claimed, n > 0, err
}

// Annotate appends metadata to a token, once for a job.
func (s *Store) Annotate(ctx context.Context, acct account.ID, a ledger.Annotation) error {
	return s.db.Write(ctx, "token "+a.Token.ID, func(ctx context.Context, tx *sqlstore.Tx) error {
		_, before, err := lock(ctx, tx, acct, a.Token, a.JobID)
		if err != nil || before {
			return err
		}
		return addEntry(ctx, tx, acct, newEntry{token: a.Token, job: a.JobID, metadata: string(a.Metadata), bytes: a.Entry})
	})
}
