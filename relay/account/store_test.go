package account

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"an account gets the next free number":               accountNumbers,
		"a number is given once":                             numbersAreGivenOnce,
		"an account keeps its number and its name":           accountKeeps,
		"an account comes back as it was saved":              accountComesBack,
		"a callback is saved and counted":                    callbackIsSaved,
		"a token is found by its hash until it is revoked":   tokenIsFound,
		"tokens are listed, and one is added":                tokensAreListed,
		"a source names the token that has it now":           sourceNames,
		"of tokens in one batch the last one counts":         lastTokenCounts,
		"every change of a token is heard":                   changesAreHeard,
		"a username is found until it is deleted":            loginIsFound,
		"secrets are sealed":                                 secretsAreSealed,
		"keys of sealed records are loaded if one is closed": keysAreLoaded,
		"a record that does not open ends no list":           otherRecordsOpen,
		"an account is added with its credit":                accountIsAdded,
		"a deleted account leaves nothing":                   deletedLeavesNothing,
		"users and waiting parts keep an account":            jsonKeepsAccount,
		"one of many saves an account":                       func(t *testing.T, s *Store) { raceOf(t, s, s) },
	})
}

func accountNumbers(t *testing.T, s *Store) {
	for range 2 { // the second time changes nothing
		for _, step := range []struct {
			give Account
			want relay.AccountID
		}{
			{Account{Name: "a"}, 1},
			{Account{Name: "b", ID: 2}, 2},
			{Account{Name: "c", ID: 3}, 3},
			{Account{Name: "d"}, 4},
			{Account{Name: "a"}, 1},
			{Account{Name: "big", ID: 1<<63 - 1}, 1<<63 - 1},
		} {
			relaytest.Equal(t, "result of PutAccount", relaytest.Must(s.PutAccount(t.Context(), step.give))(t), step.want)
		}
		all, err := s.Accounts(t.Context())
		relaytest.NoError(t, err)
		if len(all) != 5 {
			t.Fatalf("result of Accounts: %d results, want %d", len(all), 5)
		}
		relaytest.Equal(t, "result of Accounts, [3].Name", all[3].Name, "d")
		relaytest.Equal(t, "result of Accounts, [3].ID", all[3].ID, 4)
		relaytest.Equal(t, "result of Accounts, [4].ID", all[4].ID, 1<<63-1)
	}
}

func numbersAreGivenOnce(t *testing.T, s *Store) {
	_, err := s.PutAccount(t.Context(), Account{Name: "a"})
	_, err2 := s.db.Exec(t.Context(), "test", "DELETE FROM account")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "result of PutAccount", relaytest.Must(s.PutAccount(t.Context(), Account{Name: "b"}))(t), 2)
}

func accountKeeps(t *testing.T, s *Store) {
	_, err := s.PutAccount(t.Context(), Account{Name: "a", ID: 5})
	_, err2 := s.PutAccount(t.Context(), Account{Name: "c", ID: 7})
	relaytest.NoError(t, err, err2)
	for _, wrong := range []Account{{Name: "a", ID: 6}, {Name: "b", ID: 5}, {Name: "a", ID: 7}} {
		id, err := s.PutAccount(t.Context(), wrong)
		dbtest.WantKind(t, err, relay.KindConflict)
		relaytest.Equal(t, "id", id, 0)
	}
}

func accountComesBack(t *testing.T, s *Store) {
	want := Account{Name: `q"uote %1 %`, Permissions: []string{"mvno"}, WebhookSecrets: []string{"whsec_%a"}, CallbackURL: "https://x/?a=%20"}
	for range 2 {
		id, err := s.PutAccount(t.Context(), want)
		relaytest.NoError(t, err)
		want.ID = id
		got, err := s.Account(t.Context(), id)
		named, err2 := s.AccountByName(t.Context(), want.Name)
		relaytest.NoError(t, err, err2)
		relaytest.Equal(t, "got", got, want)
		relaytest.Equal(t, "named", named, want)
		want.Permissions, want.ID = nil, 0
	}
	_, err := s.Account(t.Context(), 99)
	dbtest.WantKind(t, err, relay.KindNotFound)
	_, err = s.AccountByName(t.Context(), "nobody")
	dbtest.WantKind(t, err, relay.KindNotFound)
}

func callbackIsSaved(t *testing.T, s *Store) {
	id, err := s.PutAccount(t.Context(), Account{Name: "a", Permissions: []string{"mvno"}})
	relaytest.NoError(t, err)
	for range 2 { // the second changes nothing
		relaytest.NoError(t, s.SetCallback(t.Context(), id, "https://x/?<&>"))
		got, err := s.Account(t.Context(), id)
		n, err2 := db.Version(t.Context(), s.db, "accounts")
		relaytest.NoError(t, err, err2)
		if got.CallbackURL != "https://x/?<&>" || !got.May("mvno") || n != 1 {
			t.Errorf("%+v, version %d", got, n)
		}
	}
	dbtest.WantKind(t, s.SetCallback(t.Context(), 99, "https://x/"), relay.KindNotFound)
}

func loginIsFound(t *testing.T, s *Store) {
	want := Login{Username: `ac"me`, Account: 7, Password: "hashed"}
	_, err := s.Login(t.Context(), want.Username)
	dbtest.WantKind(t, err, relay.KindNotFound)
	for _, acct := range []relay.AccountID{7, 8, 8} {
		want.Account = acct
		relaytest.NoError(t, s.PutLogin(t.Context(), want))
		relaytest.Equal(t, "result of Login", relaytest.Must(s.Login(t.Context(), want.Username))(t), want)
	}
	relaytest.NoError(t, s.DeleteLogin(t.Context(), want.Username), s.DeleteLogin(t.Context(), want.Username))
	_, err = s.Login(t.Context(), want.Username)
	dbtest.WantKind(t, err, relay.KindNotFound)
}

// raceOf creates accounts at two gateways at once.
func raceOf(t *testing.T, one, two *Store) {
	var running sync.WaitGroup
	same, own := make([]relay.AccountID, 20), make([]relay.AccountID, 20)
	for i := range same {
		s := []*Store{one, two}[i%2]
		running.Go(func() {
			var err, err2 error
			same[i], err = s.PutAccount(t.Context(), Account{Name: "same"})
			own[i], err2 = s.PutAccount(t.Context(), Account{Name: fmt.Sprint(i)})
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
		})
	}
	running.Wait()
	slices.Sort(own)
	if len(slices.Compact(same)) != 1 || len(slices.Compact(own)) != len(own) {
		t.Errorf("one account has the ids %v, others have %v", same, own)
	}
}

func TestTwoGateways(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, one, two *Store){
		"one of them saves an account": raceOf,
		"one of them adds an account":  addingRace,
		"tokens that share sources":    tokensRace,
	} {
		t.Run(name, func(t *testing.T) {
			gateways := dbtest.Two(t, NewStore)
			test(t, gateways[0], gateways[1])
		})
	}
}
