package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/redisstore/redistest"
)

func TestAccounts(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		for name, test := range map[string]func(*testing.T, *Accounts){
			"an account gets the next free number":             accountNumbers,
			"an account keeps its number and its name":         accountKeeps,
			"ten that create one account get one number":       accountRace,
			"an account comes back as it was saved":            accountComesBack,
			"a token is found by its hash until it is revoked": tokenIsFound,
			"a source names the token that has it now":         sourceNames,
			"whoever listens hears of every change":            changesAreHeard,
			"a username is found until it is deleted":          loginIsFound,
			"the inventory is saved over what it was read as":  inventoryIsSaved,
		} {
			t.Run(name, func(t *testing.T) { test(t, open(t).Accounts()) })
		}
	})
}

func accountNumbers(t *testing.T, s *Accounts) {
	for _, step := range []struct {
		give account.Account
		want account.ID
	}{
		{account.Account{Name: "a"}, 1},
		{account.Account{Name: "b", ID: 2}, 2},
		{account.Account{Name: "c", ID: 3}, 3},
		{account.Account{Name: "d"}, 4},
		{account.Account{Name: "a"}, 1},
		{account.Account{Name: "big", ID: 1 << 52}, 1 << 52},
	} {
		if id, err := s.PutAccount(t.Context(), step.give); err != nil || id != step.want {
			t.Errorf("%+v: %d, %v", step.give, id, err)
		}
	}
	all, err := s.Accounts(t.Context())
	if err != nil || len(all) != 5 || all[3].Name != "d" || all[4].ID != 1<<52 {
		t.Errorf("%+v, %v", all, err)
	}
}

func accountKeeps(t *testing.T, s *Accounts) {
	_, err := s.PutAccount(t.Context(), account.Account{Name: "a", ID: 5})
	mustDo(t, err)
	for _, wrong := range []account.Account{{Name: "a", ID: 6}, {Name: "b", ID: 5}} {
		_, err := s.PutAccount(t.Context(), wrong)
		wantKind(t, err, relay.KindConflict)
	}
}

func accountRace(t *testing.T, s *Accounts) {
	var wg sync.WaitGroup
	ids := make([]account.ID, 10)
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = s.PutAccount(t.Context(), account.Account{Name: "a"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("%v", ids)
	}
}

func accountComesBack(t *testing.T, s *Accounts) {
	want := account.Account{Name: `q"uote %1 %`, Permissions: []string{"mvno"}, WebhookSecrets: []string{"whsec_%a"}, CallbackURL: "https://x/?a=%20"}
	id, err := s.PutAccount(t.Context(), want)
	mustDo(t, err)
	want.ID = id
	got, err := s.Account(t.Context(), id)
	named, err2 := s.AccountByName(t.Context(), want.Name)
	mustDo(t, err, err2)
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(named) != fmt.Sprint(want) {
		t.Errorf("%+v, %+v", got, named)
	}
	_, err = s.Account(t.Context(), 99)
	wantKind(t, err, relay.KindNotFound)
	_, err = s.AccountByName(t.Context(), "nobody")
	wantKind(t, err, relay.KindNotFound)
}

func tokenOf(text, source string) account.Token {
	return account.Token{Hash: account.HashToken(text), Account: 1, Scopes: []account.Scope{account.Webhook}, Source: source, Secret: "s"}
}

func tokenIsFound(t *testing.T, s *Accounts) {
	mustDo(t, s.PutTokens(t.Context(), []account.Token{tokenOf("one", ""), tokenOf("two", "src")}))
	got, err := s.Token(t.Context(), account.HashToken("two"))
	if err != nil || !got.Has(account.Webhook) || got.Secret != "s" {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, s.DeleteToken(t.Context(), tokenOf("two", "src")))
	_, err = s.Token(t.Context(), account.HashToken("two"))
	wantKind(t, err, relay.KindNotFound)
	_, err = s.TokenBySource(t.Context(), "src")
	wantKind(t, err, relay.KindNotFound)
}

func sourceNames(t *testing.T, s *Accounts) {
	mustDo(t, s.PutTokens(t.Context(), []account.Token{tokenOf("one", "src")}))
	if got, err := s.TokenBySource(t.Context(), "src"); err != nil || got.Hash != account.HashToken("one") {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, s.PutTokens(t.Context(), []account.Token{tokenOf("one", "other")}))
	_, err := s.TokenBySource(t.Context(), "src")
	wantKind(t, err, relay.KindNotFound)
}

func loginIsFound(t *testing.T, s *Accounts) {
	want := account.Login{Username: `ac"me`, Account: 7, Password: "hashed"}
	_, err := s.Login(t.Context(), want.Username)
	wantKind(t, err, relay.KindNotFound)
	mustDo(t, s.PutLogin(t.Context(), want))
	if got, err := s.Login(t.Context(), want.Username); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	want.Account = 8
	mustDo(t, s.PutLogin(t.Context(), want))
	if got, err := s.Login(t.Context(), want.Username); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, s.DeleteLogin(t.Context(), want.Username), s.DeleteLogin(t.Context(), want.Username))
	_, err = s.Login(t.Context(), want.Username)
	wantKind(t, err, relay.KindNotFound)
}

func changesAreHeard(t *testing.T, s *Accounts) {
	heard := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Changes(ctx, func() { heard <- struct{}{} })
		close(ended)
	}()
	hear(t, heard, "the beginning")
	mustDo(t, s.PutTokens(t.Context(), []account.Token{tokenOf("one", "")}))
	hear(t, heard, "a new token")
	mustDo(t, s.DeleteToken(t.Context(), tokenOf("one", "")))
	hear(t, heard, "a revoked token")
	cancel()
	hear(t, ended, "the end")
}

func hear(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(15 * time.Second):
		t.Fatalf("did not hear of %s", what)
	}
}

func inventoryIsSaved(t *testing.T, s *Accounts) {
	none, err := s.Inventory(t.Context())
	if none != nil || err != nil {
		t.Fatalf("%q, %v", none, err)
	}
	mustDo(t, s.PutInventory(t.Context(), nil, []byte("one")))
	wantKind(t, s.PutInventory(t.Context(), nil, []byte("raced")), relay.KindConflict)
	mustDo(t, s.PutInventory(t.Context(), []byte("one"), []byte("two")))
	if got, err := s.Inventory(t.Context()); string(got) != "two" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A gateway that lost its connection may have missed a revocation. It hears of
// it once tokens can be read again, not before: until then what it remembers is
// all there is.
func TestChangesAreHeardAfterARestart(t *testing.T) {
	server := redistest.Start(t)
	s := openURL(t, server.URL).Accounts()
	heard := make(chan struct{}, 100)
	readable := make(chan error, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.Changes(ctx, func() {
		_, err := s.Token(ctx, "none")
		readable <- err
		heard <- struct{}{}
	})
	hear(t, heard, "the beginning")
	server.Stop()
	server.Restart()
	hear(t, heard, "the restart")
	for len(readable) > 0 {
		wantKind(t, <-readable, relay.KindNotFound)
	}
}
