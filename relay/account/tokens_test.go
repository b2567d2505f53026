package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func tokenOf(text, source string) Token {
	return Token{Hash: HashToken(text), Account: 1, Scopes: []Scope{Webhook}, Source: source, Secret: "s"}
}

func put(t *testing.T, s *Store, tokens ...Token) {
	t.Helper()
	relaytest.NoError(t, s.PutTokens(t.Context(), tokens))
}

// wantSource checks that a source belongs to the token with a text, or to no token if the text is
// empty.
func wantSource(t *testing.T, s *Store, source, text string) {
	t.Helper()
	got, err := s.TokenBySource(t.Context(), source)
	if text == "" {
		dbtest.WantKind(t, err, relay.KindNotFound)
	} else if err != nil || got.Hash != HashToken(text) || got.Source != source {
		t.Errorf("token of source %s = %+v, error %v; want %s", source, got, err, text)
	}
}

func tokenIsFound(t *testing.T, s *Store) {
	put(t, s, tokenOf("one", ""), tokenOf("two", "src"))
	got, err := s.Token(t.Context(), HashToken("two"))
	if err != nil || !got.HasScope(Webhook) || got.Secret != "s" {
		t.Errorf("token = %+v, error %v; want scope webhook and secret s", got, err)
	}
	for range 2 {
		relaytest.NoError(t, s.DeleteToken(t.Context(), tokenOf("two", "src")))
		_, err = s.Token(t.Context(), HashToken("two"))
		dbtest.WantKind(t, err, relay.KindNotFound)
		wantSource(t, s, "src", "")
	}
	if _, err := s.Token(t.Context(), HashToken("one")); err != nil {
		t.Errorf("Token after another token is deleted: %v", err)
	}
}

func tokensAreListed(t *testing.T, s *Store) {
	added := tokenOf("three", "src")
	added.CreatedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	put(t, s, tokenOf("one", ""), tokenOf("two", "other"))
	relaytest.Must(s.PutAccount(t.Context(), Account{Name: "acme"}))(t)
	relaytest.NoError(t, s.AddToken(t.Context(), added))
	conflicting := tokenOf("four", "src")
	dbtest.WantKind(t, s.AddToken(t.Context(), conflicting), relay.KindConflict)
	wantSource(t, s, "src", "three")
	tokens, err := s.Tokens(t.Context())
	relaytest.NoError(t, err)
	want := []Token{tokenOf("one", ""), tokenOf("two", "other"), added}
	slices.SortFunc(want, func(a, b Token) int { return strings.Compare(a.Hash, b.Hash) })
	relaytest.Equal(t, "the tokens", tokens, want)
}

func sourceBelongsToToken(t *testing.T, s *Store) {
	wantSource(t, s, "", "")
	put(t, s, tokenOf("one", "src"), tokenOf("plain", ""))
	put(t, s, tokenOf("one", "src"))
	wantSource(t, s, "src", "one")
	put(t, s, tokenOf("one", "other"))
	wantSource(t, s, "src", "")
	wantSource(t, s, "other", "one")
	wantSource(t, s, "", "")
	// A token that has taken over a source keeps it when the previous token is revoked.
	put(t, s, tokenOf("two", "other"))
	relaytest.NoError(t, s.DeleteToken(t.Context(), tokenOf("one", "other")))
	wantSource(t, s, "other", "two")
	put(t, s, tokenOf("two", "src"), tokenOf("three", "other"))
	put(t, s, tokenOf("two", "other"), tokenOf("three", "src"))
	wantSource(t, s, "other", "two")
	wantSource(t, s, "src", "three")
}

func lastTokenGetsSource(t *testing.T, s *Store) {
	put(t, s)
	put(t, s, tokenOf("one", "a"), tokenOf("two", "a"), tokenOf("one", "b"))
	wantSource(t, s, "a", "two")
	wantSource(t, s, "b", "one")
	put(t, s, tokenOf("one", "c"), tokenOf("two", "c"))
	wantSource(t, s, "c", "two")
	relaytest.Equal(t, "the source of the first token", relaytest.Must(s.Token(t.Context(), HashToken("one")))(t).Source, "c")
}

// putTokensConcurrently saves and revokes tokens with the same sources at two gateways.
func putTokensConcurrently(t *testing.T, s1, s2 *Store) {
	var wg sync.WaitGroup
	for i := range 20 {
		s := []*Store{s1, s2}[i%2]
		wg.Go(func() {
			a, b := tokenOf(fmt.Sprint("a", i), "x"), tokenOf(fmt.Sprint("b", i), "y")
			if i%4 < 2 {
				a, b = b, a
			}
			if err := s.PutTokens(t.Context(), []Token{a, b}); err != nil {
				t.Error(err)
			}
			if err := s.DeleteToken(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	put(t, s1, tokenOf("last", "x"))
	wantSource(t, s2, "x", "last")
	if n, err := db.Version(t.Context(), s2.db, tokensVersion); err != nil || n != 41 {
		t.Errorf("version = %d, error %v; want 41", n, err)
	}
}

// listen runs Changes until the test ends.
func listen(t *testing.T, s *Store, onChange func([]Token)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Changes(ctx, onChange)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// waitForChange waits until a change is reported.
func waitForChange(t *testing.T, c <-chan struct{}, change string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(relaytest.Patience):
		t.Fatalf("timeout: %s was not reported", change)
	}
}

func changesAreReported(t *testing.T, s *Store) {
	otherStore := NewStore(s.db) // the store of another gateway
	s.poll, otherStore.poll = time.Hour, 5*time.Millisecond
	changes, otherChanges := make(chan struct{}, 100), make(chan struct{}, 100)
	listen(t, s, func([]Token) { changes <- struct{}{} })
	listen(t, otherStore, func([]Token) { otherChanges <- struct{}{} })
	waitForChange(t, changes, "the start")
	waitForChange(t, otherChanges, "the start")
	for _, change := range []func() error{
		func() error { return s.PutTokens(t.Context(), []Token{tokenOf("one", "")}) },
		func() error { return s.DeleteToken(t.Context(), tokenOf("one", "")) },
	} {
		relaytest.NoError(t, change())
		waitForChange(t, changes, "a change of this gateway")
		waitForChange(t, changes, "the version of the change")
		waitForChange(t, otherChanges, "a change of another gateway")
	}
	if len(changes) > 0 || len(otherChanges) > 0 {
		t.Errorf("%d and %d additional changes were reported, want 0", len(changes), len(otherChanges))
	}
}

// While the database is down, Changes reports nothing, so that a gateway continues with its cached
// tokens. It reports a change when the tokens can be read again.
func TestChangesAreReportedAfterARestart(t *testing.T) {
	server := dbtest.StartPostgres(t)
	url := server.NewDatabase(t)
	s, otherStore := NewStore(dbtest.Open(t, db.Options{URL: url})), NewStore(dbtest.Open(t, db.Options{URL: url}))
	s.poll = 5 * time.Millisecond
	reported := make(chan struct{}, 100)
	readable := make(chan error, 100)
	listen(t, s, func([]Token) {
		_, err := s.Token(context.Background(), "none")
		readable <- err
		reported <- struct{}{}
	})
	waitForChange(t, reported, "the start")
	server.Kill()
	if _, err := s.Token(t.Context(), "none"); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("Token without a server: error %v, want kind unavailable", err)
	}
	server.Start()
	relaytest.NoError(t, putUntilUp(t, otherStore))
	waitForChange(t, reported, "the change")
	if len(reported) > 0 {
		t.Errorf("%d additional changes were reported, want 0", len(reported))
	}
	close(readable)
	for err := range readable {
		dbtest.WantKind(t, err, relay.KindNotFound)
	}
}

// putUntilUp saves a token and retries over new connections.
func putUntilUp(t *testing.T, s *Store) (err error) {
	for range 50 {
		if err = s.PutTokens(t.Context(), []Token{tokenOf("new", "")}); err == nil {
			return nil
		}
	}
	return err
}
