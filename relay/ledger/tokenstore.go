package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// SetHome notes the account of a token.
func (s *Store) SetHome(ctx context.Context, tokenID string, acct relay.AccountID) error {
	return s.db.Run(ctx, "token "+tokenID, db.Upsert("ledger_home", "token", "account"), tokenID, acct)
}

// Home returns the account of a token.
func (s *Store) Home(ctx context.Context, tokenID string) (relay.AccountID, error) {
	return db.Value[relay.AccountID](ctx, s.db, "token "+tokenID, `
SELECT account FROM ledger_home WHERE token = $1`, tokenID)
}

// Token loads a token.
func (s *Store) Token(ctx context.Context, acct relay.AccountID, tokenID string) (Token, error) {
	return db.One(ctx, s.db, "token "+tokenID, `
SELECT doc, claimed FROM ledger_token WHERE account = $1 AND id = $2`, tokenFields, acct, tokenID)
}

// Annotations lists the entries that append metadata to a token, in order.
func (s *Store) Annotations(ctx context.Context, acct relay.AccountID, tokenID string) ([]Row, error) {
	return db.List(ctx, s.db, "token "+tokenID+": metadata", `
SELECT sequence, entry FROM ledger_entry
WHERE account = $1 AND token = $2 AND metadata <> ''
ORDER BY sequence`, func(r *Row) []any {
		return []any{&r.Sequence, &r.Bytes}
	}, acct, tokenID)
}

// tokenFields are columns of a token; doc comes first, as the others count.
func tokenFields(t *Token) []any { return []any{db.JSON(t), &t.Claimed} }

// Standing loads a token with the entries that say how it stands.
func (s *Store) Standing(ctx context.Context, acct relay.AccountID, tokenID string) (Standing, error) {
	return db.One(ctx, s.db, "token "+tokenID, standings+`
WHERE t.account = $1 AND t.id = $2`, standingFields, acct, tokenID)
}

// Standings lists tokens of an account by id, behind one, as Standing does.
func (s *Store) Standings(ctx context.Context, acct relay.AccountID, after string, limit int) ([]Standing, error) {
	return db.List(ctx, s.db, "tokens of account "+acct.String(), standings+`
WHERE t.account = $1 AND t.id > $2
ORDER BY t.id LIMIT $3`, standingFields, acct, after, limit)
}

// standings selects tokens with their generation, their last entry and the number of
// their entries, of one moment. A generation has no entry before it.
const standings = `
SELECT t.id, t.doc, t.claimed, COALESCE(h.account, 0),
  COALESCE(g.sequence, 0), COALESCE(g.token, ''), COALESCE(g.job, ''), COALESCE(g.metadata, ''), COALESCE(g.position, 0), COALESCE(g.claims, 0), g.entry, g.mac, NULL,
  (SELECT COUNT(*) FROM ledger_entry n WHERE n.account = t.account AND n.token = t.id),
  COALESCE(e.sequence, 0), COALESCE(e.token, ''), COALESCE(e.job, ''), COALESCE(e.metadata, ''), COALESCE(e.position, 0), COALESCE(e.claims, 0), e.entry, e.mac, (
    SELECT p.mac FROM ledger_entry p
    WHERE p.account = t.account AND p.token = t.id AND p.sequence < e.sequence
    ORDER BY p.sequence DESC LIMIT 1)
FROM ledger_token t
LEFT JOIN ledger_home h ON h.token = t.id
LEFT JOIN ledger_entry g ON g.account = t.account AND g.token = t.id AND g.job = ''
LEFT JOIN ledger_entry e ON e.account = t.account AND e.token = t.id AND e.sequence = (
  SELECT l.sequence FROM ledger_entry l
  WHERE l.account = t.account AND l.token = t.id
  ORDER BY l.sequence DESC LIMIT 1)`

func standingFields(st *Standing) []any {
	fields := []any{&st.ID, db.JSON(&st.Token), &st.Chain.Claimed, &st.Home}
	fields = append(fields, rowFields(&st.Generation)...)
	fields = append(append(fields, &st.Chain.Entries), rowFields(&st.Chain.Last)...)
	return append(fields, func() { st.Token.Claimed = st.Chain.Claimed })
}

// Generate saves a new token and its entry. A token that exists is left alone.
func (s *Store) Generate(ctx context.Context, acct relay.AccountID, g Generation) error {
	noun := "token " + g.Token.ID
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		added, err := tx.Exec(ctx, noun, `
INSERT INTO ledger_token (account, id, claimed, doc) VALUES ($1, $2, 0, $3)
ON CONFLICT (account, id) DO NOTHING`, acct, g.Token.ID, db.JSON(g.Token))
		if err != nil || added == 0 {
			return err
		}
		c, _, err := lock(ctx, tx, acct, g.Token, g.Authenticator, "")
		if err != nil {
			return err
		}
		return addEntry(ctx, tx, acct, g.Token, g.Authenticator, c, Row{Bytes: g.Entry})
	})
}

// Claim counts a claim of each token, all or none. That a job has claimed is its
// entry: it comes to the same when it runs again. One that was refused is refused
// again, since claims and time never come back.
func (s *Store) Claim(ctx context.Context, acct relay.AccountID, all []Claim) ([]ClaimResult, error) {
	return db.Transact(ctx, s.db, "claim", func(ctx context.Context, tx *db.Tx) ([]ClaimResult, error) {
		return claim(ctx, tx, acct, all)
	})
}

// claimable is a claim that may be counted, the nth of a job.
type claimable struct {
	Claim
	n     int
	chain Chain // before
}

func claim(ctx context.Context, tx *db.Tx, acct relay.AccountID, all []Claim) ([]ClaimResult, error) {
	results := make([]ClaimResult, len(all))
	var free []claimable
	// The order in which a transaction with several claims locks their tokens and then the logs
	// of their ledgers.
	order := func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Token.Ledger, b.Token.Ledger), cmp.Compare(a.Token.ID, b.Token.ID))
	}
	for _, n := range db.PlacesInOrder(all, order) {
		c := all[n]
		chain, before, err := lock(ctx, tx, acct, c.Token, c.Authenticator, c.JobID)
		switch {
		case err != nil:
			return nil, err
		case before:
			results[n] = ClaimCounted
		case !c.Token.Valid(c.Now):
			results[n] = ClaimExpired
		case c.Token.Limit != 0 && chain.Claimed >= c.Token.Limit:
			results[n] = ClaimExhausted
		default:
			results[n] = ClaimWithheld
			free = append(free, claimable{c, n, chain})
		}
	}
	refused := func(r ClaimResult) bool { return r == ClaimExpired || r == ClaimExhausted }
	if slices.ContainsFunc(results, refused) {
		return results, nil
	}
	for _, c := range free {
		results[c.n] = ClaimCounted
		if err := countOne(ctx, tx, acct, c); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func countOne(ctx context.Context, tx *db.Tx, acct relay.AccountID, c claimable) error {
	if err := tx.Run(ctx, "token "+c.Token.ID, `
UPDATE ledger_token SET claimed = claimed + 1 WHERE account = $1 AND id = $2`, acct, c.Token.ID); err != nil {
		return err
	}
	claims := c.chain.Claimed + 1
	entry := c.Before + strconv.FormatInt(claims, 10) + c.After
	return addEntry(ctx, tx, acct, c.Token, c.Authenticator, c.chain, Row{Job: c.JobID, Claims: claims, Bytes: []byte(entry)})
}

// lock locks a token, checks its entries, and returns them and whether the job, empty: that
// which generates it, has added one of them.
func lock(ctx context.Context, tx *db.Tx, acct relay.AccountID, t Token, a Authenticator, job string) (c Chain, before bool, err error) {
	noun := "token " + t.ID
	claimed, err := db.Value[int64](ctx, tx, noun, `
SELECT claimed FROM ledger_token WHERE account = $1 AND id = $2 {for update}`, acct, t.ID)
	if err != nil {
		return c, false, err
	}
	// A statement of its own, which sees what was committed while the lock was awaited.
	c, err = db.One(ctx, tx, noun, `
SELECT n.entries, n.of_job, COALESCE(e.sequence, 0), COALESCE(e.token, ''), COALESCE(e.job, ''), COALESCE(e.metadata, ''), COALESCE(e.position, 0), COALESCE(e.claims, 0), e.entry, e.mac, (
  SELECT p.mac FROM ledger_entry p
  WHERE p.account = $1 AND p.token = $2 AND p.sequence < e.sequence
  ORDER BY p.sequence DESC LIMIT 1)
FROM (
  SELECT COUNT(*) AS entries,
    EXISTS (SELECT 1 FROM ledger_entry j WHERE j.account = $1 AND j.token = $2 AND j.job = $3) AS of_job
  FROM ledger_entry
  WHERE account = $1 AND token = $2) n
LEFT JOIN ledger_entry e ON e.account = $1 AND e.token = $2 AND e.sequence = (
  SELECT l.sequence FROM ledger_entry l
  WHERE l.account = $1 AND l.token = $2
  ORDER BY l.sequence DESC LIMIT 1)`, func(c *Chain) []any {
		return append([]any{&c.Entries, &before}, rowFields(&c.Last)...)
	}, acct, t.ID, job)
	if err != nil {
		return c, false, err
	}
	c.Claimed = claimed
	return c, before, a.Check(t.ID, c, job == "")
}

// Annotate appends metadata to a token, once for a job.
func (s *Store) Annotate(ctx context.Context, acct relay.AccountID, a Annotation) error {
	return s.db.Write(ctx, "token "+a.Token.ID, func(ctx context.Context, tx *db.Tx) error {
		c, before, err := lock(ctx, tx, acct, a.Token, a.Authenticator, a.JobID)
		if err != nil || before {
			return err
		}
		return addEntry(ctx, tx, acct, a.Token, a.Authenticator, c, Row{Job: a.JobID, Metadata: string(a.Metadata), Claims: c.Claimed, Bytes: a.Entry})
	})
}
