package account

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// loadingSealer opens nothing until its keys are loaded from the database.
type loadingSealer struct {
	dbtest.Sealer
	db    *db.DB
	loads *int
}

func (l loadingSealer) Load(ctx context.Context) error {
	*l.loads++
	_, err := db.Value[int](ctx, l.db, "keys", "SELECT COUNT(*) FROM account")
	return err
}

func (l loadingSealer) Open(sealed []byte, owner string) ([]byte, error) {
	if *l.loads == 0 {
		return nil, errors.New("no key is loaded")
	}
	return l.Sealer.Open(sealed, owner)
}

// keysAreLoaded reads a record before the keys are loaded and a record that cannot be decrypted.
func keysAreLoaded(t *testing.T, s *Store) {
	s.db.SetSealer(dbtest.Sealer{})
	_, err := s.PutAccount(t.Context(), Account{ID: 7, Name: "acme"})
	relaytest.NoError(t, err)
	loads := 0
	s.db.SetSealer(loadingSealer{db: s.db, loads: &loads})
	accounts, err := s.Accounts(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the numbers of accounts and of key loads", []int{len(accounts), loads}, []int{1, 1})
	relaytest.NoError(t, s.db.Run(t.Context(), "account", "INSERT INTO account (id, name, doc) SELECT 8, 'other', doc FROM account"))
	if _, err := s.Account(t.Context(), 8); !errors.Is(err, relay.ErrUndecryptable) {
		t.Errorf("Account that cannot be decrypted: error %v, want %v", err, relay.ErrUndecryptable)
	}
	relaytest.Equal(t, "the number of key loads", loads, 2)
}

// otherRecordsAreListed changes one record of each kind: lists contain the other records.
func otherRecordsAreListed(t *testing.T, s *Store) {
	ctx := t.Context()
	s.db.SetSealer(dbtest.Sealer{})
	for id := range relay.AccountID(2) {
		_, err := s.PutAccount(ctx, Account{ID: id + 1, Name: []string{"acme", "globex"}[id], CallbackURL: "https://example.com/"})
		relaytest.NoError(t, err)
	}
	relaytest.NoError(t,
		s.PutTokens(ctx, []Token{{Hash: "a", Account: 1, Source: "a", Secret: "one"}, {Hash: "b", Account: 2, Source: "b", Secret: "two"}}))
	for _, row := range [][3]string{{"account", "doc", "id = 1"}, {"token", "secret", "hash = 'a'"}} {
		dbtest.Tamper(t, s.db, row[0], row[1], row[2])
	}
	accounts, err := s.Accounts(ctx)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the accounts", accounts, []Account{{ID: 1, Name: "acme", Undecryptable: true}, {ID: 2, Name: "globex", CallbackURL: "https://example.com/"}})
	a, err := s.AccountByName(ctx, "acme")
	relaytest.Equal(t, "id and error of the account that cannot be decrypted", []any{a.ID, errors.Is(err, relay.ErrUndecryptable)}, []any{relay.AccountID(1), true})
	tokens, err := s.Tokens(ctx)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the secrets of the tokens", []any{tokens[0].Secret, tokens[0].Undecryptable, tokens[1].Secret, tokens[1].Undecryptable}, []any{"", true, "two", false})
	_, err = s.TokenBySource(ctx, "a")
	if !errors.Is(err, relay.ErrUndecryptable) {
		t.Errorf("TokenBySource of a token that cannot be decrypted: error %v, want %v", err, relay.ErrUndecryptable)
	}

	// Gateways cache the other token.
	watching, stop := context.WithCancel(ctx)
	s.Changes(watching, func(cached []Token) {
		relaytest.Equal(t, "the number of cached tokens", len(cached), 1)
		stop()
	})
}

// secretsAreSealed saves and loads secrets, which the database contains in sealed form only.
func secretsAreSealed(t *testing.T, s *Store) {
	ctx := t.Context()
	save := func() {
		_, err := s.PutAccount(ctx, Account{ID: 7, Name: "acme", WebhookSecrets: []string{"whsec_new", "whsec_old"}})
		relaytest.NoError(t, err,
			s.PutTokens(ctx, []Token{{Hash: "h", Account: 7, Source: "hq", Secret: "signs"}}),
			s.SetCallback(ctx, 7, "https://example.com/"))
	}
	checkSecrets := func() {
		t.Helper()
		byID, err := s.Account(ctx, 7)
		relaytest.NoError(t, err)
		byName, err := s.AccountByName(ctx, "acme")
		relaytest.NoError(t, err)
		accounts, err := s.Accounts(ctx)
		relaytest.NoError(t, err)
		for _, a := range append(accounts, byID, byName) {
			relaytest.Equal(t, "the webhook secrets", a.WebhookSecrets, []string{"whsec_new", "whsec_old"})
		}
		byHash, err := s.Token(ctx, "h")
		relaytest.NoError(t, err)
		bySource, err := s.TokenBySource(ctx, "hq")
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the secret of the token by hash", byHash.Secret, "signs")
		relaytest.Equal(t, "the secret of the token by source", bySource.Secret, "signs")
	}
	countSecrets := func() (secrets int) {
		t.Helper()
		for _, table := range []string{"account", "token"} {
			doc, err := db.Value[[]byte](ctx, s.db, table, "SELECT doc FROM "+table)
			relaytest.NoError(t, err)
			for _, secret := range []string{"whsec_new", "whsec_old", "signs"} {
				secrets += strings.Count(string(doc), secret)
			}
		}
		return secrets
	}
	s.db.SetSealer(dbtest.Sealer{})
	save()
	checkSecrets()
	save()
	checkSecrets()
	if n := countSecrets(); n != 0 {
		t.Errorf("the database contains %d secrets, want 0", n)
	}

	// An attacker who can write the database copies the secrets to another account.
	_, err := s.PutAccount(ctx, Account{ID: 8, Name: "attacker"})
	relaytest.NoError(t, err,
		s.PutTokens(ctx, []Token{{Hash: "t", Account: 8, Source: "attacker"}}),
		s.db.Run(ctx, "copy", "UPDATE account SET doc = (SELECT doc FROM account WHERE id = 7) WHERE id = 8"),
		s.db.Run(ctx, "copy", "UPDATE token SET secret = (SELECT secret FROM token WHERE hash = 'h') WHERE hash = 't'"))
	if a, err := s.Account(ctx, 8); err == nil {
		t.Errorf("the account of the attacker has the secrets %v", a.WebhookSecrets)
	}
	if token, err := s.Token(ctx, "t"); err == nil {
		t.Errorf("the token of the attacker has the secret %q", token.Secret)
	}
}
