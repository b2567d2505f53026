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
		"an account gets the next free id":                       idsAreAssigned,
		"an id is assigned once":                                 idsAreAssignedOnce,
		"an account keeps its id and its name":                   accountKeepsIDAndName,
		"an account is loaded as saved":                          accountIsLoaded,
		"a callback is saved and changes the version":            callbackIsSaved,
		"a token is found by its hash until it is revoked":       tokenIsFound,
		"tokens are added and listed":                            tokensAreListed,
		"a source belongs to the token that has taken it last":   sourceBelongsToToken,
		"the last token of a batch gets the source":              lastTokenGetsSource,
		"changes of tokens are reported":                         changesAreReported,
		"a username is found until it is deleted":                loginIsFound,
		"secrets are sealed":                                     secretsAreSealed,
		"keys are loaded if a record cannot be decrypted":        keysAreLoaded,
		"a record that cannot be decrypted does not fail a list": otherRecordsAreListed,
		"an account is added with its credit":                    accountIsAdded,
		"a deleted account leaves nothing":                       deletionLeavesNothing,
		"users and parked parts prevent a deletion":              jsonPreventsDeletion,
		"one of many concurrent calls creates an account":        func(t *testing.T, s *Store) { createConcurrently(t, s, s) },
	})
}

func idsAreAssigned(t *testing.T, s *Store) {
	for range 2 { // the second round changes nothing
		for _, step := range []struct {
			account Account
			want    relay.AccountID
		}{
			{Account{Name: "a"}, 1},
			{Account{Name: "b", ID: 2}, 2},
			{Account{Name: "c", ID: 3}, 3},
			{Account{Name: "d"}, 4},
			{Account{Name: "a"}, 1},
			{Account{Name: "big", ID: 1<<63 - 1}, 1<<63 - 1},
		} {
			relaytest.Equal(t, "the id", relaytest.Must(s.PutAccount(t.Context(), step.account))(t), step.want)
		}
		accounts, err := s.Accounts(t.Context())
		relaytest.NoError(t, err)
		if len(accounts) != 5 {
			t.Fatalf("got %d accounts, want 5", len(accounts))
		}
		relaytest.Equal(t, "the name of the fourth account", accounts[3].Name, "d")
		relaytest.Equal(t, "the id of the fourth account", accounts[3].ID, 4)
		relaytest.Equal(t, "the id of the last account", accounts[4].ID, 1<<63-1)
	}
}

func idsAreAssignedOnce(t *testing.T, s *Store) {
	_, err := s.PutAccount(t.Context(), Account{Name: "a"})
	_, err2 := s.db.Exec(t.Context(), "test", "DELETE FROM account")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the id", relaytest.Must(s.PutAccount(t.Context(), Account{Name: "b"}))(t), 2)
}

func accountKeepsIDAndName(t *testing.T, s *Store) {
	_, err := s.PutAccount(t.Context(), Account{Name: "a", ID: 5})
	_, err2 := s.PutAccount(t.Context(), Account{Name: "c", ID: 7})
	relaytest.NoError(t, err, err2)
	for _, wrong := range []Account{{Name: "a", ID: 6}, {Name: "b", ID: 5}, {Name: "a", ID: 7}} {
		id, err := s.PutAccount(t.Context(), wrong)
		dbtest.WantKind(t, err, relay.KindConflict)
		relaytest.Equal(t, "the id", id, 0)
	}
}

func accountIsLoaded(t *testing.T, s *Store) {
	want := Account{Name: `q"uote %1 %`, Permissions: []string{"mvno"}, WebhookSecrets: []string{"whsec_%a"}, CallbackURL: "https://x/?a=%20"}
	for range 2 {
		id, err := s.PutAccount(t.Context(), want)
		relaytest.NoError(t, err)
		want.ID = id
		got, err := s.Account(t.Context(), id)
		byName, err2 := s.AccountByName(t.Context(), want.Name)
		relaytest.NoError(t, err, err2)
		relaytest.Equal(t, "the account by id", got, want)
		relaytest.Equal(t, "the account by name", byName, want)
		want.Permissions, want.ID = nil, 0
	}
	_, err := s.Account(t.Context(), 99)
	dbtest.WantKind(t, err, relay.KindNotFound)
	_, err = s.AccountByName(t.Context(), "unknown")
	dbtest.WantKind(t, err, relay.KindNotFound)
}

func callbackIsSaved(t *testing.T, s *Store) {
	id, err := s.PutAccount(t.Context(), Account{Name: "a", Permissions: []string{"mvno"}})
	relaytest.NoError(t, err)
	for range 2 { // the second call changes nothing
		relaytest.NoError(t, s.SetCallback(t.Context(), id, "https://x/?<&>"))
		got, err := s.Account(t.Context(), id)
		n, err2 := db.Version(t.Context(), s.db, "accounts")
		relaytest.NoError(t, err, err2)
		if got.CallbackURL != "https://x/?<&>" || !got.HasPermission("mvno") || n != 1 {
			t.Errorf("account %+v, version %d; want the callback, mvno and version 1", got, n)
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
		relaytest.Equal(t, "the login", relaytest.Must(s.Login(t.Context(), want.Username))(t), want)
	}
	relaytest.NoError(t, s.DeleteLogin(t.Context(), want.Username), s.DeleteLogin(t.Context(), want.Username))
	_, err = s.Login(t.Context(), want.Username)
	dbtest.WantKind(t, err, relay.KindNotFound)
}

// createConcurrently creates accounts at two gateways concurrently.
func createConcurrently(t *testing.T, s1, s2 *Store) {
	var wg sync.WaitGroup
	sameIDs, otherIDs := make([]relay.AccountID, 20), make([]relay.AccountID, 20)
	for i := range sameIDs {
		s := []*Store{s1, s2}[i%2]
		wg.Go(func() {
			var err, err2 error
			sameIDs[i], err = s.PutAccount(t.Context(), Account{Name: "same"})
			otherIDs[i], err2 = s.PutAccount(t.Context(), Account{Name: fmt.Sprint(i)})
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
		})
	}
	wg.Wait()
	slices.Sort(otherIDs)
	if len(slices.Compact(sameIDs)) != 1 || len(slices.Compact(otherIDs)) != len(otherIDs) {
		t.Errorf("ids of the same account = %v, ids of the others = %v; want one and distinct ones", sameIDs, otherIDs)
	}
}

func TestTwoGateways(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, s1, s2 *Store){
		"accounts with the same name are created once": createConcurrently,
		"accounts with the same name are added once":   addConcurrently,
		"tokens share sources":                         putTokensConcurrently,
	} {
		t.Run(name, func(t *testing.T) {
			gateways := dbtest.TwoGateways(t, NewStore)
			test(t, gateways[0], gateways[1])
		})
	}
}
