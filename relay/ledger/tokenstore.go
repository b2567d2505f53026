package ledger

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// SetAccount saves the account of a token, for the token's link.
func (s *Store) SetAccount(ctx context.Context, tokenID string, acct relay.AccountID) error {
	const statement = `
		INSERT INTO ledger_home (token, account)
		VALUES ($1, $2)
		ON CONFLICT (token) DO UPDATE
		SET account = excluded.account`
	return s.db.Run(ctx, "token "+tokenID, statement, tokenID, acct)
}

// AccountOf returns the account of a token; relay.KindNotFound if there is none.
func (s *Store) AccountOf(ctx context.Context, tokenID string) (relay.AccountID, error) {
	return db.Value[relay.AccountID](ctx, s.db, "token "+tokenID, "SELECT account FROM ledger_home WHERE token = $1", tokenID)
}

// Token loads a token without its appended metadata; relay.KindNotFound if the account does not
// have the token.
func (s *Store) Token(ctx context.Context, acct relay.AccountID, tokenID string) (Token, error) {
	const query = "SELECT doc, claimed FROM ledger_token WHERE account = $1 AND id = $2"
	fields := func(t *Token) []any { return []any{db.JSON(t), &t.Claimed} } // the column overwrites the document
	return db.One(ctx, s.db, "token "+tokenID, query, fields, acct, tokenID)
}

// TokensOf lists up to limit tokens of a ledger whose ids have a prefix, the latest generated
// first, without their appended metadata. It omits tokens that were generated at or after the
// sequence beforeSeq; 0 means no bound.
func (s *Store) TokensOf(ctx context.Context, acct relay.AccountID, ledgerID, idPrefix string, beforeSeq int64, limit int) ([]ListedToken, error) {
	const query = `
		SELECT e.sequence, t.doc, t.claimed
		FROM ledger_entry e
		JOIN ledger_token t ON t.account = e.account AND t.id = e.token
		WHERE e.account = $1
		  AND e.ledger = $2
		  AND e.job = ''
		  AND e.sequence < $3
		  AND e.token >= $4
		  AND e.token < $5
		ORDER BY e.sequence DESC
		LIMIT $6`
	fields := func(t *ListedToken) []any { return []any{&t.Sequence, db.JSON(&t.Token), &t.Claimed} }
	afterPrefix := idPrefix + "g" // ids are hex
	return db.List(ctx, s.db, "ledger "+ledgerID+": tokens", query, fields,
		acct, ledgerID, cmp.Or(beforeSeq, math.MaxInt64), idPrefix, afterPrefix, limit)
}

// ListedToken is a token with the sequence of its first entry.
type ListedToken struct {
	Token
	Sequence int64
}

// Annotations lists the entries that append metadata to a token, in order.
func (s *Store) Annotations(ctx context.Context, acct relay.AccountID, tokenID string) ([]Row, error) {
	const query = `
		SELECT sequence, entry
		FROM ledger_entry
		WHERE account = $1
		  AND token = $2
		  AND metadata <> ''
		ORDER BY sequence`
	fields := func(r *Row) []any { return []any{&r.Sequence, &r.Bytes} }
	return db.List(ctx, s.db, "token "+tokenID+": metadata", query, fields, acct, tokenID)
}

// Standing loads a token with the entries that determine its state, in one query.
func (s *Store) Standing(ctx context.Context, acct relay.AccountID, tokenID string) (Standing, error) {
	const query = selectStandings + `
		WHERE t.account = $1
		  AND t.id = $2`
	return db.One(ctx, s.db, "token "+tokenID, query, standingFields, acct, tokenID)
}

// Standings loads up to limit tokens of an account after lastID, by id, as Standing does.
func (s *Store) Standings(ctx context.Context, acct relay.AccountID, lastID string, limit int) ([]Standing, error) {
	const query = selectStandings + `
		WHERE t.account = $1
		  AND t.id > $2
		ORDER BY t.id
		LIMIT $3`
	return db.List(ctx, s.db, "tokens of account "+acct.String(), query, standingFields, acct, lastID, limit)
}

// selectStandings selects tokens with their generation, the number of their entries, and their
// last entry.
const selectStandings = `
		SELECT t.id, t.doc, t.claimed, COALESCE(h.account, 0),
		       COALESCE(g.sequence, 0), COALESCE(g.token, ''), COALESCE(g.job, ''), COALESCE(g.metadata, ''),
		       COALESCE(g.position, 0), COALESCE(g.claims, 0), g.entry, g.mac, NULL,
		       (SELECT COUNT(*) FROM ledger_entry n WHERE n.account = t.account AND n.token = t.id),
		       COALESCE(e.sequence, 0), COALESCE(e.token, ''), COALESCE(e.job, ''), COALESCE(e.metadata, ''),
		       COALESCE(e.position, 0), COALESCE(e.claims, 0), e.entry, e.mac,
		       (SELECT p.mac
		        FROM ledger_entry p
		        WHERE p.account = t.account AND p.token = t.id AND p.sequence < e.sequence
		        ORDER BY p.sequence DESC
		        LIMIT 1)
		FROM ledger_token t
		LEFT JOIN ledger_home h ON h.token = t.id
		LEFT JOIN ledger_entry g ON g.account = t.account AND g.token = t.id AND g.job = ''
		LEFT JOIN ledger_entry e ON e.account = t.account AND e.token = t.id AND e.sequence = (
			SELECT l.sequence
			FROM ledger_entry l
			WHERE l.account = t.account AND l.token = t.id
			ORDER BY l.sequence DESC
			LIMIT 1)`

func standingFields(st *Standing) []any {
	fields := []any{&st.ID, db.JSON(&st.Token), &st.Chain.Claimed, &st.Account}
	fields = append(fields, rowFields(&st.Generation)...)
	fields = append(append(fields, &st.Chain.Entries), rowFields(&st.Chain.Last)...)
	return append(fields, func() { st.Token.Claimed = st.Chain.Claimed })
}

// Generate saves a new token and its entry in one transaction. It does not change an existing
// token.
//
// Generate, Claim and Annotate return a Mismatch and change nothing if the Authenticator refuses the
// stored entries of a token.
func (s *Store) Generate(ctx context.Context, acct relay.AccountID, t Token, entry []byte, a Authenticator) error {
	const insert = `
		INSERT INTO ledger_token (account, id, claimed, doc)
		VALUES ($1, $2, 0, $3)
		ON CONFLICT (account, id) DO NOTHING`
	label := "token " + t.ID
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		added, err := tx.Exec(ctx, label, insert, acct, t.ID, db.JSON(t))
		if err != nil || added == 0 {
			return err
		}
		chain, _, err := lockToken(ctx, tx, acct, t, a, "")
		if err != nil {
			return err
		}
		return addEntry(ctx, tx, acct, t, a, chain, Row{Bytes: entry})
	})
}

// Claim counts a claim of each token and adds the entries, in one transaction. It counts none if
// one of the tokens is exhausted or expired. If the job has already claimed the tokens, Claim
// returns the same results and changes nothing.
func (s *Store) Claim(ctx context.Context, acct relay.AccountID, claims []Claim) ([]ClaimResult, error) {
	const count = "UPDATE ledger_token SET claimed = claimed + 1 WHERE account = $1 AND id = $2"
	return db.Transact(ctx, s.db, "claim", func(ctx context.Context, tx *db.Tx) ([]ClaimResult, error) {
		// 1. Lock the tokens and decide about each claim. The order prevents deadlocks: every
		// transaction locks tokens by ledger and id, and then the logs of the ledgers.
		results, chains := make([]ClaimResult, len(claims)), make([]Chain, len(claims))
		order := db.PlacesInOrder(claims, func(a, b Claim) int {
			return cmp.Or(cmp.Compare(a.Token.Ledger, b.Token.Ledger), cmp.Compare(a.Token.ID, b.Token.ID))
		})
		for _, n := range order {
			c := claims[n]
			chain, done, err := lockToken(ctx, tx, acct, c.Token, c.Authenticator, c.JobID)
			switch {
			case err != nil:
				return nil, err
			case done:
				results[n] = ClaimCounted
			case !c.Token.Valid(c.Now):
				results[n] = ClaimExpired
			case c.Token.Limit != 0 && chain.Claimed >= c.Token.Limit:
				results[n] = ClaimExhausted
			default:
				results[n], chains[n] = ClaimWithheld, chain
			}
		}
		if slices.Contains(results, ClaimExpired) || slices.Contains(results, ClaimExhausted) {
			return results, nil
		}

		// 2. Count the claims that were not counted before.
		for _, n := range order {
			if results[n] != ClaimWithheld {
				continue
			}
			c := claims[n]
			if err := tx.Run(ctx, "token "+c.Token.ID, count, acct, c.Token.ID); err != nil {
				return nil, err
			}
			number := chains[n].Claimed + 1
			entry, err := c.Entry(number)
			if err != nil {
				return nil, err
			}
			row := Row{Job: c.JobID, Claims: number, Bytes: entry}
			if err := addEntry(ctx, tx, acct, c.Token, c.Authenticator, chains[n], row); err != nil {
				return nil, err
			}
			results[n] = ClaimCounted
		}
		return results, nil
	})
}

// Annotate appends metadata to a token and adds the entry, in one transaction. It does nothing if
// the job has already added an entry to the token.
func (s *Store) Annotate(ctx context.Context, acct relay.AccountID, a Annotation) error {
	return s.db.Write(ctx, "token "+a.Token.ID, func(ctx context.Context, tx *db.Tx) error {
		chain, done, err := lockToken(ctx, tx, acct, a.Token, a.Authenticator, a.JobID)
		if err != nil || done {
			return err
		}
		row := Row{Job: a.JobID, Metadata: string(a.Metadata), Claims: chain.Claimed, Bytes: a.Entry}
		return addEntry(ctx, tx, acct, a.Token, a.Authenticator, chain, row)
	})
}

// lockToken locks a token and returns its chain. done reports whether the job has already added an
// entry to the token. An empty job means the token's generation. lockToken returns a Mismatch if
// gateways did not write the entries, or if there are entries before the generation.
func lockToken(ctx context.Context, tx *db.Tx, acct relay.AccountID, t Token, a Authenticator, job string) (chain Chain, done bool, err error) {
	const lock = "SELECT claimed FROM ledger_token WHERE account = $1 AND id = $2 {for update}"
	// A second statement sees the entries that were committed while the first waited for the lock.
	const query = `
		SELECT n.entries, n.done,
		       COALESCE(e.sequence, 0), COALESCE(e.token, ''), COALESCE(e.job, ''), COALESCE(e.metadata, ''),
		       COALESCE(e.position, 0), COALESCE(e.claims, 0), e.entry, e.mac,
		       (SELECT p.mac
		        FROM ledger_entry p
		        WHERE p.account = $1 AND p.token = $2 AND p.sequence < e.sequence
		        ORDER BY p.sequence DESC
		        LIMIT 1)
		FROM (
			SELECT COUNT(*) AS entries,
			       EXISTS (SELECT 1 FROM ledger_entry j WHERE j.account = $1 AND j.token = $2 AND j.job = $3) AS done
			FROM ledger_entry
			WHERE account = $1 AND token = $2) n
		LEFT JOIN ledger_entry e ON e.account = $1 AND e.token = $2 AND e.sequence = (
			SELECT l.sequence
			FROM ledger_entry l
			WHERE l.account = $1 AND l.token = $2
			ORDER BY l.sequence DESC
			LIMIT 1)`
	label := "token " + t.ID
	claimed, err := db.Value[int64](ctx, tx, label, lock, acct, t.ID)
	if err != nil {
		return chain, false, err
	}
	fields := func(c *Chain) []any { return append([]any{&c.Entries, &done}, rowFields(&c.Last)...) }
	chain, err = db.One(ctx, tx, label, query, fields, acct, t.ID, job)
	if err != nil {
		return chain, false, err
	}
	chain.Claimed = claimed
	fault := ""
	if job != "" {
		fault = a.chainFault(chain)
	} else if chain.Entries > 0 {
		fault = fmt.Sprintf("it has %d entries before its generation", chain.Entries)
	}
	if fault != "" {
		err = &Mismatch{a.place, t.ID, fault}
	}
	return chain, done, err
}
