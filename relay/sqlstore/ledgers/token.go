package ledgers

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/sqlstore"
)

// SetHome notes the account of a token.
func (s *Store) SetHome(ctx context.Context, tokenID string, acct account.ID) error {
	return s.db.Run(ctx, "token "+tokenID, sqlstore.Upsert("ledger_home", "token", "account"), tokenID, acct)
}

// Home returns the account of a token.
func (s *Store) Home(ctx context.Context, tokenID string) (account.ID, error) {
	return sqlstore.Value[account.ID](ctx, s.db, "token "+tokenID, `
SELECT account FROM ledger_home WHERE token = $1`, tokenID)
}

// Token loads a token.
func (s *Store) Token(ctx context.Context, acct account.ID, tokenID string) (ledger.Token, error) {
	return sqlstore.One(ctx, s.db, "token "+tokenID, `
SELECT doc, claimed FROM ledger_token WHERE account = $1 AND id = $2`, tokenFields, acct, tokenID)
}

// Annotations lists the entries that append metadata to a token, in order.
func (s *Store) Annotations(ctx context.Context, acct account.ID, tokenID string) ([]ledger.Row, error) {
	return sqlstore.List(ctx, s.db, "token "+tokenID+": metadata", `
SELECT sequence, entry FROM ledger_entry
WHERE account = $1 AND token = $2 AND metadata <> ''
ORDER BY sequence`, func(r *ledger.Row) []any {
		return []any{&r.Sequence, &r.Bytes}
	}, acct, tokenID)
}

// tokenFields are columns of a token; doc comes first, as the others count.
func tokenFields(t *ledger.Token) []any { return []any{sqlstore.JSON(t), &t.Claimed} }

// Standing loads a token with the entries that say how it stands.
func (s *Store) Standing(ctx context.Context, acct account.ID, tokenID string) (ledger.Standing, error) {
	// The token, its generation and its last claim are of one moment. Entries of claims are
	// those that append nothing.
	return sqlstore.One(ctx, s.db, "token "+tokenID, `
SELECT t.doc, t.claimed, COALESCE(g.sequence, 0), g.entry, COALESCE(c.sequence, 0), c.entry
FROM ledger_token t
LEFT JOIN ledger_entry g ON g.account = t.account AND g.token = t.id AND g.job = ''
LEFT JOIN ledger_entry c ON c.account = t.account AND c.token = t.id AND c.sequence = (
  SELECT sequence FROM ledger_entry
  WHERE account = $1 AND token = $2 AND metadata = ''
  ORDER BY sequence DESC LIMIT 1)
WHERE t.account = $1 AND t.id = $2`, func(st *ledger.Standing) []any {
		return append(tokenFields(&st.Token), &st.Generation.Sequence, &st.Generation.Bytes, &st.Last.Sequence, &st.Last.Bytes)
	}, acct, tokenID)
}

// Tokens lists tokens of an account by id, behind one, with the account that each
// token's link leads to.
func (s *Store) Tokens(ctx context.Context, acct account.ID, after string, limit int) ([]ledger.TokenAt, error) {
	return sqlstore.List(ctx, s.db, "tokens of account "+acct.String(), `
SELECT t.doc, t.claimed, COALESCE(h.account, 0)
FROM ledger_token t LEFT JOIN ledger_home h ON h.token = t.id
WHERE t.account = $1 AND t.id > $2
ORDER BY t.id LIMIT $3`, func(t *ledger.TokenAt) []any {
		return append(tokenFields(&t.Token), &t.Home)
	}, acct, after, limit)
}

// Generate saves a new token and its entry. A token that exists is left alone.
func (s *Store) Generate(ctx context.Context, acct account.ID, t ledger.Token, entry []byte) error {
	noun := "token " + t.ID
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		added, err := tx.Exec(ctx, noun, `
INSERT INTO ledger_token (account, id, claimed, doc) VALUES ($1, $2, 0, $3)
ON CONFLICT (account, id) DO NOTHING`, acct, t.ID, sqlstore.JSON(t))
		if err != nil || added == 0 {
			return err
		}
		return addEntry(ctx, tx, acct, newEntry{token: t, bytes: entry})
	})
}

// Claim counts a claim of each token, all or none. That a job has claimed is its
// entry: it comes to the same when it runs again. One that was refused is refused
// again, since claims and time never come back.
func (s *Store) Claim(ctx context.Context, acct account.ID, all []ledger.Claim) ([]ledger.ClaimResult, error) {
	return sqlstore.Transact(ctx, s.db, "claim", func(ctx context.Context, tx *sqlstore.Tx) ([]ledger.ClaimResult, error) {
		return claim(ctx, tx, acct, all)
	})
}

// claimable is a claim that may be counted, the nth of a job.
type claimable struct {
	ledger.Claim
	n       int
	claimed int64 // before
}

func claim(ctx context.Context, tx *sqlstore.Tx, acct account.ID, all []ledger.Claim) ([]ledger.ClaimResult, error) {
	results := make([]ledger.ClaimResult, len(all))
	var free []claimable
	// The order in which a transaction with several claims locks their tokens and then the logs
	// of their ledgers.
	order := func(a, b ledger.Claim) int {
		return cmp.Or(cmp.Compare(a.Token.Ledger, b.Token.Ledger), cmp.Compare(a.Token.ID, b.Token.ID))
	}
	for _, n := range sqlstore.PlacesInOrder(all, order) {
		c := all[n]
		claimed, before, err := lock(ctx, tx, acct, c.Token, c.JobID)
		switch {
		case err != nil:
			return nil, err
		case before:
			results[n] = ledger.ClaimCounted
		case !c.Token.Valid(c.Now):
			results[n] = ledger.ClaimExpired
		case c.Token.Limit != 0 && claimed >= c.Token.Limit:
			results[n] = ledger.ClaimExhausted
		default:
			results[n] = ledger.ClaimWithheld
			free = append(free, claimable{c, n, claimed})
		}
	}
	refused := func(r ledger.ClaimResult) bool { return r == ledger.ClaimExpired || r == ledger.ClaimExhausted }
	if slices.ContainsFunc(results, refused) {
		return results, nil
	}
	for _, c := range free {
		results[c.n] = ledger.ClaimCounted
		if err := countOne(ctx, tx, acct, c); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func countOne(ctx context.Context, tx *sqlstore.Tx, acct account.ID, c claimable) error {
	if err := tx.Run(ctx, "token "+c.Token.ID, `
UPDATE ledger_token SET claimed = claimed + 1 WHERE account = $1 AND id = $2`, acct, c.Token.ID); err != nil {
		return err
	}
	entry := c.Before + strconv.FormatInt(c.claimed+1, 10) + c.After
	return addEntry(ctx, tx, acct, newEntry{token: c.Token, job: c.JobID, bytes: []byte(entry)})
}

// lock locks a token, and returns how often it was claimed and whether the job has
// claimed or annotated it before.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, t ledger.Token, job string) (claimed int64, before bool, err error) {
	if claimed, err = sqlstore.Value[int64](ctx, tx, "token "+t.ID, `
SELECT claimed FROM ledger_token WHERE account = $1 AND id = $2 {for update}`, acct, t.ID); err != nil {
		return 0, false, err
	}
	n, err := sqlstore.Value[int64](ctx, tx, "token "+t.ID, `
SELECT COUNT(*) FROM ledger_entry WHERE account = $1 AND token = $2 AND job = $3`, acct, t.ID, job)
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
