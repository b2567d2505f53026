package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// tokensVersion is the version that every change of a token increments.
const tokensVersion = "tokens"

// saveTokens saves the tokens of a batch.
const saveTokens = `
	INSERT INTO token (hash, source, doc, secret)
	SELECT hash, source, doc, secret FROM batch WHERE true
	ON CONFLICT (hash) DO UPDATE
	SET source = excluded.source, doc = excluded.doc, secret = excluded.secret`

// Token loads a token by its hash. It returns relay.KindNotFound if there is none, and
// relay.ErrUndecryptable if its secret cannot be decrypted.
func (s *Store) Token(ctx context.Context, hash string) (Token, error) {
	const query = `
		SELECT doc, secret
		FROM token
		WHERE hash = $1`
	return s.token(ctx, "token", query, hash)
}

// TokenBySource loads the last token that was saved with a source, as Token does.
func (s *Store) TokenBySource(ctx context.Context, source string) (Token, error) {
	const query = `
		SELECT doc, secret
		FROM token
		WHERE source = $1
		  AND source <> ''`
	return s.token(ctx, "source", query, source)
}

func (s *Store) token(ctx context.Context, label, query, key string) (Token, error) {
	t, err := db.One(ctx, s.db, label, query, tokenFields, key)
	if err == nil && t.Undecryptable {
		return Token{}, fmt.Errorf("%s: %w", label, relay.ErrUndecryptable)
	}
	return t, err
}

// Tokens lists all tokens by hash, including tokens with a secret that cannot be decrypted.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	const query = `
		SELECT doc, secret
		FROM token
		ORDER BY hash`
	return db.List(ctx, s.db, "tokens", query, tokenFields)
}

// tokenFields returns pointers for the columns doc and secret. Only the secret is sealed, so that
// tokens without a secret are accepted even if the master key is missing.
func tokenFields(t *Token) []any {
	return []any{db.JSON(t), sealedSecret(t)}
}

func sealedSecret(t *Token) any {
	return db.SealedOr(&t.Undecryptable, &t.Secret, "token", &t.Account)
}

// PutTokens saves tokens. A saved token takes over its source from another token.
func (s *Store) PutTokens(ctx context.Context, tokens []Token) error {
	const takeSources = `
		UPDATE token
		SET source = ''
		WHERE source <> ''
		  AND source IN (SELECT source FROM batch)`
	if len(tokens) == 0 {
		return nil
	}
	rows := tokenRows(tokens)
	return s.changeTokens(ctx, "tokens", func(ctx context.Context, tx *db.Tx) error {
		return tx.RunAll(ctx, "tokens", db.Do(takeSources, rows), db.Do(saveTokens, rows))
	})
}

// AddToken saves a new token. It returns relay.KindConflict if another token has its
// source, and relay.KindInvalid if its account does not exist.
func (s *Store) AddToken(ctx context.Context, t Token) error {
	const countAccount = `
		SELECT COUNT(*)
		FROM account
		WHERE id = $1`
	const countSource = `
		SELECT COUNT(*)
		FROM token
		WHERE source = $1
		  AND source <> ''`
	rows := tokenRows([]Token{t})
	return s.changeTokens(ctx, "token", func(ctx context.Context, tx *db.Tx) error {
		accounts, err := db.Value[int64](ctx, tx, "token", countAccount, t.Account)
		if err != nil {
			return err
		}
		if accounts == 0 {
			return relay.Invalid("account", fmt.Sprintf("There is no account %d.", t.Account))
		}
		count, err := db.Value[int64](ctx, tx, "token", countSource, t.Source)
		if err != nil {
			return err
		}
		if count > 0 {
			return relay.Errorf(relay.KindConflict, "There is a token with the source %s already.", t.Source)
		}
		return tx.Run(ctx, "token", saveTokens, rows)
	})
}

// tokenRows returns the rows of tokens: one for each hash, and each source in one row. Of
// several tokens with the same hash or source, the last one wins.
func tokenRows(tokens []Token) *db.Batch {
	b := db.NewBatch("hash, source, doc, secret")
	hashes, sources := make(map[string]bool, len(tokens)), make(map[string]bool)
	for _, t := range slices.Backward(tokens) {
		if hashes[t.Hash] {
			continue
		}
		source := t.Source
		if sources[source] {
			source = ""
		}
		hashes[t.Hash], sources[source] = true, true
		document := t
		document.Secret = ""
		b.Add(t.Hash, source, db.JSON(document), sealedSecret(&t))
	}
	return b
}

// DeleteToken revokes a token.
func (s *Store) DeleteToken(ctx context.Context, t Token) error {
	const statement = `
		DELETE FROM token
		WHERE hash = $1`
	return s.changeTokens(ctx, "token", func(ctx context.Context, tx *db.Tx) error {
		return tx.Run(ctx, "token", statement, t.Hash)
	})
}

// changeTokens calls change and increments the version, so that every gateway drops its cached
// tokens. It increments the version first, because the lock of its row orders the changes.
func (s *Store) changeTokens(ctx context.Context, label string, change func(context.Context, *db.Tx) error) error {
	err := s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Bump(ctx, tokensVersion); err != nil {
			return err
		}
		return change(ctx, tx)
	})
	// Report a change even after an error, because it may be committed.
	relay.Notify(s.changed)
	return err
}

// Changes calls onChange with all tokens when it begins and whenever a token may have changed,
// until ctx is done: at once after a change through this store, within a second after a
// change by another gateway. It omits tokens with a secret that cannot be decrypted; gateways
// refuse these tokens. Only one call of Changes may run at a time.
//
// An error while Changes reads the version is not a change: a gateway continues with its
// cached tokens while the database is down. If the tokens cannot be read after a change,
// Changes tries again.
func (s *Store) Changes(ctx context.Context, onChange func([]Token)) {
	ticker := time.NewTicker(s.poll)
	defer ticker.Stop()
	report := func() bool {
		tokens, err := s.Tokens(ctx)
		if relay.KindOf(err) == relay.KindUnavailable {
			return false
		}
		onChange(slices.DeleteFunc(tokens, func(t Token) bool { return t.Undecryptable }))
		return true
	}
	for reported := int64(-1); ; {
		if n, err := db.Version(ctx, s.db, tokensVersion); err == nil && n != reported && report() {
			reported = n
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.changed:
			if !report() {
				reported = -1
			}
		}
	}
}
