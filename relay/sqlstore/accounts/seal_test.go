package accounts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore"
)

// mirror seals by turning a text round, behind what it belongs to.
type mirror struct{}

func (mirror) Load(context.Context) error { return nil }

func (mirror) Seal(plain []byte, owner string) ([]byte, error) {
	turned := slices.Clone(plain)
	slices.Reverse(turned)
	return append([]byte(owner+"|"), turned...), nil
}

func (mirror) Open(sealed []byte, owner string) ([]byte, error) {
	turned, found := bytes.CutPrefix(sealed, []byte(owner+"|"))
	if !found {
		return nil, fmt.Errorf("%.40q is not of %s", sealed, owner)
	}
	slices.Reverse(turned)
	return turned, nil
}

// keyed opens nothing before its keys were loaded from the database.
type keyed struct {
	mirror
	db    *sqlstore.DB
	loads *int
}

func (k keyed) Load(ctx context.Context) error {
	*k.loads++
	_, err := sqlstore.Value[int](ctx, k.db, "keys", "SELECT COUNT(*) FROM account")
	return err
}

func (k keyed) Open(sealed []byte, owner string) ([]byte, error) {
	if *k.loads == 0 {
		return nil, errors.New("no key is loaded")
	}
	return k.mirror.Open(sealed, owner)
}

// keysAreLoaded reads a record before the keys are loaded, and one that does not open.
func keysAreLoaded(t *testing.T, s *Store) {
	s.db.SetSealer(mirror{})
	_, err := s.PutAccount(t.Context(), account.Account{ID: 7, Name: "acme"})
	relaytest.NoError(t, err)
	loads := 0
	s.db.SetSealer(keyed{db: s.db, loads: &loads})
	all, err := s.Accounts(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the accounts, and how often keys were loaded", []int{len(all), loads}, []int{1, 1})
	relaytest.NoError(t, s.db.Run(t.Context(), "account", "INSERT INTO account (id, name, doc) SELECT 8, 'other', doc FROM account"))
	if all, err := s.Accounts(t.Context()); err == nil {
		t.Errorf("%d accounts", len(all))
	}
	relaytest.Equal(t, "how often keys were loaded", loads, 2)
}

// secretsAreSealed saves secrets: they come back, and the database shows none.
func secretsAreSealed(t *testing.T, s *Store) {
	ctx := t.Context()
	save := func(was []byte) {
		_, err := s.PutAccount(ctx, account.Account{ID: 7, Name: "acme", WebhookSecrets: []string{"whsec_new", "whsec_old"}})
		relaytest.NoError(t, err,
			s.PutTokens(ctx, []account.Token{{Hash: "h", Account: 7, Source: "hq", Secret: "signs"}}),
			s.PutInventory(ctx, was, []byte(`{"secret":"whsec_new"}`), account.SIMChanges{Put: []account.DeclaredSIM{{ICCID: "1", Declared: `{"puk":"signs"}`}}}),
			s.SetCallback(ctx, 7, "https://example.com/"))
	}
	comesBack := func() {
		t.Helper()
		byID, err := s.Account(ctx, 7)
		relaytest.NoError(t, err)
		byName, err := s.AccountByName(ctx, "acme")
		relaytest.NoError(t, err)
		all, err := s.Accounts(ctx)
		relaytest.NoError(t, err)
		for _, a := range append(all, byID, byName) {
			relaytest.Equal(t, "a.WebhookSecrets", a.WebhookSecrets, []string{"whsec_new", "whsec_old"})
		}
		byHash, err := s.Token(ctx, "h")
		relaytest.NoError(t, err)
		bySource, err := s.TokenBySource(ctx, "hq")
		relaytest.NoError(t, err)
		document, err := s.Inventory(ctx)
		relaytest.NoError(t, err)
		sims, err := s.DeclaredSIMs(ctx, account.WhichSIMs{All: true})
		relaytest.NoError(t, err)
		if len(sims) != 1 {
			t.Fatalf("sims: %d results, want %d", len(sims), 1)
		}
		relaytest.Equal(t, "sims[0].Declared", sims[0].Declared, `{"puk":"signs"}`)
		relaytest.Equal(t, "byHash.Secret", byHash.Secret, "signs")
		relaytest.Equal(t, "bySource.Secret", bySource.Secret, "signs")
		relaytest.Equal(t, "the document", string(document), `{"secret":"whsec_new"}`)
	}
	shows := func() (secrets int) {
		t.Helper()
		for _, table := range []string{"account", "token", "inventory", "declared_sim"} {
			doc, err := sqlstore.Value[[]byte](ctx, s.db, table, "SELECT doc FROM "+table)
			relaytest.NoError(t, err)
			for _, secret := range []string{"whsec_new", "whsec_old", "signs"} {
				secrets += strings.Count(string(doc), secret)
			}
		}
		return secrets
	}
	s.db.SetSealer(mirror{})
	save(nil)
	comesBack()
	save([]byte(`{"secret":"whsec_new"}`))
	comesBack()
	if n := shows(); n != 0 {
		t.Errorf("the database shows %d secrets", n)
	}

	// Whoever writes to the database copies the secrets to an account of his own.
	_, err := s.PutAccount(ctx, account.Account{ID: 8, Name: "thief"})
	relaytest.NoError(t, err,
		s.PutTokens(ctx, []account.Token{{Hash: "t", Account: 8, Source: "thief"}}),
		s.db.Run(ctx, "copy", "UPDATE account SET doc = (SELECT doc FROM account WHERE id = 7) WHERE id = 8"),
		s.db.Run(ctx, "copy", "UPDATE token SET secret = (SELECT secret FROM token WHERE hash = 'h') WHERE hash = 't'"))
	if a, err := s.Account(ctx, 8); err == nil {
		t.Errorf("the account of the thief has %v", a.WebhookSecrets)
	}
	if token, err := s.Token(ctx, "t"); err == nil {
		t.Errorf("the token of the thief has the secret %q", token.Secret)
	}
}
