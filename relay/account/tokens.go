package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// tokensVersion counts the changes of tokens.
const tokensVersion = "tokens"

// Token loads a token by its hash.
func (s *Store) Token(ctx context.Context, hash string) (Token, error) {
	return s.token(ctx, "token", "hash = $1", hash)
}

// TokenBySource loads the token that a source names: the last one that was saved
// with it.
func (s *Store) TokenBySource(ctx context.Context, source string) (Token, error) {
	return s.token(ctx, "source", "source = $1 AND source <> ''", source)
}

func (s *Store) token(ctx context.Context, noun, condition, value string) (Token, error) {
	t, err := db.One(ctx, s.db, noun, "SELECT doc, secret FROM token WHERE "+condition, readToken, value)
	if err == nil && t.Unopened {
		return Token{}, fmt.Errorf("%s: %w", noun, relay.ErrUnopened)
	}
	return t, err
}

// Tokens lists every token by its hash.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	return db.List(ctx, s.db, "tokens", "SELECT doc, secret FROM token ORDER BY hash", readToken)
}

// readToken reads a token. Its secret alone is sealed, so that tokens without one are
// accepted also while the master key is another one.
func readToken(t *Token) []any {
	return []any{db.JSON(t), sealedSecret(t)}
}

func sealedSecret(t *Token) any {
	return db.SealedOr(&t.Unopened, &t.Secret, "token", &t.Account)
}

// PutTokens saves tokens; every gateway drops its cached tokens.
func (s *Store) PutTokens(ctx context.Context, tokens []Token) error {
	if len(tokens) == 0 {
		return nil
	}
	rows := tokenRows(tokens)
	return s.changeTokens(ctx, "tokens", func(ctx context.Context, tx *db.Tx) error {
		return tx.RunAll(ctx, "tokens",
			db.Do("UPDATE token SET source = '' WHERE source <> '' AND source IN (SELECT source FROM batch)", rows),
			db.Do(db.UpsertAll("token", "hash", "source, doc, secret"), rows))
	})
}

// AddToken saves a new token. It returns relay.KindConflict if another one has its
// source.
func (s *Store) AddToken(ctx context.Context, t Token) error {
	rows := tokenRows([]Token{t})
	return s.changeTokens(ctx, "token", func(ctx context.Context, tx *db.Tx) error {
		taken, err := db.Value[int64](ctx, tx, "token", "SELECT COUNT(*) FROM token WHERE source = $1 AND source <> ''", t.Source)
		if err == nil && taken > 0 {
			err = relay.Errorf(relay.KindConflict, "There is a token with the source %s already.", t.Source)
		}
		if err == nil {
			err = tx.Run(ctx, "token", db.UpsertAll("token", "hash", "source, doc, secret"), rows)
		}
		return err
	})
}

// tokenRows returns tokens as they are saved: each once, and each source with one token;
// of several the last one counts.
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

// DeleteToken revokes a token; every gateway drops its cached tokens.
func (s *Store) DeleteToken(ctx context.Context, t Token) error {
	return s.changeTokens(ctx, "token", func(ctx context.Context, tx *db.Tx) error {
		return tx.Run(ctx, "token", "DELETE FROM token WHERE hash = $1", t.Hash)
	})
}

// changeTokens makes a change and counts up the version. It does so first: the
// lock of that row makes changes of tokens run one after another.
func (s *Store) changeTokens(ctx context.Context, noun string, change func(context.Context, *db.Tx) error) error {
	err := s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Bump(ctx, tokensVersion); err != nil {
			return err
		}
		return change(ctx, tx)
	})
	// After an error the change may have been made nevertheless.
	s.notify()
	return err
}

// Changes calls back with all tokens when it begins and whenever one may have changed,
// until ctx is done: at once after a change through this store, within Poll after one
// of another gateway. An error while it reads the version is not a change: a gateway goes
// on with its cached tokens while the database is down. If the tokens cannot be read
// after a change, Changes tries again.
func (s *Store) Changes(ctx context.Context, changed func([]Token)) {
	changedHere := s.nextChange()
	every := s.Poll
	if every <= 0 {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	report := func() bool {
		all, err := s.Tokens(ctx)
		if relay.KindOf(err) == relay.KindUnavailable {
			return false
		}
		// Those that do not open are refused when they are used.
		changed(slices.DeleteFunc(all, func(t Token) bool { return t.Unopened }))
		return true
	}
	for seen := int64(-1); ; {
		if n, err := db.Version(ctx, s.db, tokensVersion); err == nil && n != seen && report() {
			seen = n
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changedHere:
			changedHere = s.nextChange()
			if !report() {
				seen = -1
			}
		}
	}
}

// nextChange is closed by the next change of a token through this store.
func (s *Store) nextChange() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}
