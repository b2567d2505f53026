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

// named expects that a source names a token, or none if its text is empty.
func named(t *testing.T, s *Store, source, text string) {
	t.Helper()
	got, err := s.TokenBySource(t.Context(), source)
	if text == "" {
		dbtest.WantKind(t, err, relay.KindNotFound)
	} else if err != nil || got.Hash != HashToken(text) || got.Source != source {
		t.Errorf("%s names %+v, %v", source, got, err)
	}
}

func tokenIsFound(t *testing.T, s *Store) {
	put(t, s, tokenOf("one", ""), tokenOf("two", "src"))
	got, err := s.Token(t.Context(), HashToken("two"))
	if err != nil || !got.Has(Webhook) || got.Secret != "s" {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 {
		relaytest.NoError(t, s.DeleteToken(t.Context(), tokenOf("two", "src")))
		_, err = s.Token(t.Context(), HashToken("two"))
		dbtest.WantKind(t, err, relay.KindNotFound)
		named(t, s, "src", "")
	}
	if _, err := s.Token(t.Context(), HashToken("one")); err != nil {
		t.Error(err)
	}
}

func tokensAreListed(t *testing.T, s *Store) {
	made := tokenOf("three", "src")
	made.CreatedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	put(t, s, tokenOf("one", ""), tokenOf("two", "other"))
	relaytest.Must(s.PutAccount(t.Context(), Account{Name: "acme"}))(t)
	relaytest.NoError(t, s.AddToken(t.Context(), made))
	taken := tokenOf("four", "src")
	dbtest.WantKind(t, s.AddToken(t.Context(), taken), relay.KindConflict)
	named(t, s, "src", "three")
	all, err := s.Tokens(t.Context())
	relaytest.NoError(t, err)
	want := []Token{tokenOf("one", ""), tokenOf("two", "other"), made}
	slices.SortFunc(want, func(a, b Token) int { return strings.Compare(a.Hash, b.Hash) })
	relaytest.Equal(t, "all", all, want)
}

func sourceNames(t *testing.T, s *Store) {
	named(t, s, "", "")
	put(t, s, tokenOf("one", "src"), tokenOf("plain", ""))
	put(t, s, tokenOf("one", "src"))
	named(t, s, "src", "one")
	put(t, s, tokenOf("one", "other"))
	named(t, s, "src", "")
	named(t, s, "other", "one")
	named(t, s, "", "")
	// A token that takes a source over keeps it when the other one is revoked.
	put(t, s, tokenOf("two", "other"))
	relaytest.NoError(t, s.DeleteToken(t.Context(), tokenOf("one", "other")))
	named(t, s, "other", "two")
	put(t, s, tokenOf("two", "src"), tokenOf("three", "other"))
	put(t, s, tokenOf("two", "other"), tokenOf("three", "src"))
	named(t, s, "other", "two")
	named(t, s, "src", "three")
}

func lastTokenCounts(t *testing.T, s *Store) {
	put(t, s)
	put(t, s, tokenOf("one", "a"), tokenOf("two", "a"), tokenOf("one", "b"))
	named(t, s, "a", "two")
	named(t, s, "b", "one")
	put(t, s, tokenOf("one", "c"), tokenOf("two", "c"))
	named(t, s, "c", "two")
	relaytest.Equal(t, "result of Token, Source", relaytest.Must(s.Token(t.Context(), HashToken("one")))(t).Source, "c")
}

// tokensRace has two gateways save and revoke tokens that have the same sources.
func tokensRace(t *testing.T, one, two *Store) {
	var running sync.WaitGroup
	for i := range 20 {
		s := []*Store{one, two}[i%2]
		running.Go(func() {
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
	running.Wait()
	put(t, one, tokenOf("last", "x"))
	named(t, two, "x", "last")
	if n, err := db.Version(t.Context(), two.db, tokensVersion); err != nil || n != 41 {
		t.Errorf("%d changes, %v", n, err)
	}
}

// listen runs Changes until the test ends.
func listen(t *testing.T, s *Store, changed func([]Token)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Changes(ctx, changed)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func hear(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(relaytest.Patience):
		t.Fatalf("did not hear of %s", what)
	}
}

func changesAreHeard(t *testing.T, s *Store) {
	other := NewStore(s.db) // of another gateway
	s.poll, other.poll = time.Hour, 5*time.Millisecond
	here, there := make(chan struct{}, 100), make(chan struct{}, 100)
	listen(t, s, func([]Token) { here <- struct{}{} })
	listen(t, other, func([]Token) { there <- struct{}{} })
	hear(t, here, "the beginning")
	hear(t, there, "the beginning")
	for _, change := range []func() error{
		func() error { return s.PutTokens(t.Context(), []Token{tokenOf("one", "")}) },
		func() error { return s.DeleteToken(t.Context(), tokenOf("one", "")) },
	} {
		relaytest.NoError(t, change())
		hear(t, here, "a change here")
		hear(t, here, "the version of it")
		hear(t, there, "a change elsewhere")
	}
	if len(here) > 0 || len(there) > 0 {
		t.Errorf("heard of %d and %d changes too many", len(here), len(there))
	}
}

// While the database is down, Changes reports nothing, so that a gateway continues with its cached
// tokens. It reports a change once the tokens can be read again.
func TestChangesAreHeardAfterARestart(t *testing.T) {
	server := dbtest.StartPostgres(t)
	url := server.NewDatabase(t)
	s, other := NewStore(dbtest.Open(t, db.Options{URL: url})), NewStore(dbtest.Open(t, db.Options{URL: url}))
	s.poll = 5 * time.Millisecond
	heard := make(chan struct{}, 100)
	readable := make(chan error, 100)
	listen(t, s, func([]Token) {
		_, err := s.Token(context.Background(), "none")
		readable <- err
		heard <- struct{}{}
	})
	hear(t, heard, "the beginning")
	server.Kill()
	if _, err := s.Token(t.Context(), "none"); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("without a server: %v", err)
	}
	server.Start()
	relaytest.NoError(t, untilUp(t, other))
	hear(t, heard, "the change")
	if len(heard) > 0 {
		t.Errorf("heard of %d changes too many", len(heard))
	}
	close(readable)
	for err := range readable {
		dbtest.WantKind(t, err, relay.KindNotFound)
	}
}

// untilUp saves a token, also over connections that broke.
func untilUp(t *testing.T, s *Store) (err error) {
	for range 50 {
		if err = s.PutTokens(t.Context(), []Token{tokenOf("new", "")}); err == nil {
			return nil
		}
	}
	return err
}
