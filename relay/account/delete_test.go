package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// withCredit returns a function that opens an account with credits.
func withCredit(credits int64) func(context.Context, *db.Tx, relay.AccountID) error {
	return func(ctx context.Context, tx *db.Tx, id relay.AccountID) error {
		if credits < 0 {
			return relay.Invalid("credit", "negative")
		}
		return tx.Run(ctx, "test", "INSERT INTO credit (account, balance, last) VALUES ($1, $2, 1)", id, credits)
	}
}

// creditOf returns the credit of an account.
func creditOf(t *testing.T, s *Store, id relay.AccountID) int64 {
	t.Helper()
	return relaytest.Must(db.Value[int64](t.Context(), s.db, "test", "SELECT balance FROM credit WHERE account = $1", id))(t)
}

func accountIsAdded(t *testing.T, s *Store) {
	ctx := t.Context()
	id, err := s.AddAccount(ctx, Account{Name: "acme", CallbackURL: "https://x/"}, withCredit(7))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the credit", creditOf(t, s, id), 7)
	_, err = s.AddAccount(ctx, Account{Name: "acme"}, withCredit(9))
	dbtest.WantKind(t, err, relay.KindConflict)
	want := Account{ID: id, Name: "acme", CallbackURL: "https://x/"}
	relaytest.Equal(t, "the account after an account with the same name is refused", relaytest.Must(s.Account(ctx, id))(t), want)
	relaytest.Equal(t, "the credit after an account with the same name is refused", creditOf(t, s, id), 7)
	_, err = s.AddAccount(ctx, Account{Name: "globex"}, withCredit(-1))
	dbtest.WantKind(t, err, relay.KindInvalid)
	_, err = s.AccountByName(ctx, "globex") // the account is not added without its credit
	dbtest.WantKind(t, err, relay.KindNotFound)
}

// addConcurrently adds accounts with the same name at two gateways: one of each pair is added.
func addConcurrently(t *testing.T, s1, s2 *Store) {
	ctx := t.Context()
	for i := range 10 {
		name := fmt.Sprint("account ", i)
		var errs [2]error
		dbtest.RunConcurrently(2, func(k int) {
			a := Account{Name: name, CallbackURL: fmt.Sprintf("https://gateway-%d.example/", k)}
			_, errs[k] = []*Store{s1, s2}[k].AddAccount(ctx, a, withCredit(int64(k+1)))
		})
		winner := slices.Index(errs[:], nil)
		if winner < 0 {
			t.Fatal(errs)
		}
		dbtest.WantKind(t, errs[1-winner], relay.KindConflict)
		a := relaytest.Must(s1.AccountByName(ctx, name))(t)
		relaytest.Equal(t, "the callback URL", a.CallbackURL, fmt.Sprintf("https://gateway-%d.example/", winner))
		relaytest.Equal(t, "the credit", creditOf(t, s1, a.ID), int64(winner+1))
	}
}

func deletionLeavesNothing(t *testing.T, s *Store) {
	ctx := t.Context()
	id, err := s.AddAccount(ctx, Account{Name: "acme"}, withCredit(0))
	otherID, err2 := s.AddAccount(ctx, Account{Name: "globex"}, withCredit(5))
	relaytest.NoError(t, err, err2)
	tokens := []Token{{Hash: HashToken("one"), Account: id}, {Hash: HashToken("two"), Account: otherID}}
	relaytest.NoError(t, s.PutTokens(ctx, tokens),
		s.PutLogin(ctx, Login{Username: "acme", Account: id}), s.PutLogin(ctx, Login{Username: "globex", Account: otherID}))
	versions := []string{"tokens", "accounts", "relays", "iot/1", "rules/1"}
	oldVersions := relaytest.Must(db.Versions(ctx, s.db, versions))(t)

	dbtest.WantKind(t, s.DeleteAccount(ctx, otherID), relay.KindInvalid) // the account holds credit
	relaytest.NoError(t, s.DeleteAccount(ctx, id))

	relaytest.Equal(t, "the tokens", relaytest.Must(s.Tokens(ctx))(t), tokens[1:])
	relaytest.Equal(t, "the logins", relaytest.Must(logins.All(ctx, s.db, 0))(t), []Login{{Username: "globex", Account: otherID}})
	for name, n := range relaytest.Must(db.Versions(ctx, s.db, versions))(t) {
		if n == oldVersions[name] {
			t.Errorf("the version %s has not changed: gateways keep cached records", name)
		}
	}
	dbtest.WantKind(t, s.DeleteAccount(ctx, id), relay.KindNotFound)
	dbtest.WantKind(t, s.AddToken(ctx, Token{Hash: HashToken("three"), Account: id}), relay.KindInvalid)
	relaytest.Equal(t, "the id of the next account", relaytest.Must(s.AddAccount(ctx, Account{Name: "acme"}, withCredit(0)))(t), otherID+1)
}

// keptTables are the tables with a column account whose rows remain, with the reason.
var keptTables = map[string]string{
	"audit_entry":   "the audit log has entries about deleted accounts",
	"declared_sim":  "the column has the name of the account, and declared accounts are not deleted",
	"ledger_log":    "gateways report a missing log; without entries it is empty",
	"ledger_sealed": "gateways cache the keys of accounts in memory",
	"login":         "the account is in the JSON document of the row",
	"network":       "the account is 0",
	"sensor_type":   "the account is 0",
}

// TestEveryTableOfAccountsIsDeleted puts a row into each table of the schema that has a
// column account. The row either prevents the deletion of the account or is deleted with it.
func TestEveryTableOfAccountsIsDeleted(t *testing.T) {
	const selectTables = `
		SELECT m.name
		FROM sqlite_master m
		JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table'
		  AND c.name = 'account'
		ORDER BY m.name`
	ctx := t.Context()
	s := NewStore(dbtest.Open(t, db.Options{}))
	tables := relaytest.Must(db.Values[string](ctx, s.db, "test", selectTables))(t)
	if len(tables) < 50 {
		t.Fatalf("got %d tables with a column account, want at least 50: %v", len(tables), tables)
	}
	for _, table := range tables {
		if keptTables[table] != "" {
			continue
		}
		t.Run(table, func(t *testing.T) {
			id, err := s.AddAccount(ctx, Account{Name: table}, withCredit(0))
			relaytest.NoError(t, err)
			query := insertOf(t, s, table)
			if table == "credit" { // the account already has a row
				query = "UPDATE credit SET balance = 1 WHERE account = $1"
			}
			relaytest.NoError(t, s.db.Run(ctx, "test", query, id))
			prevents := slices.ContainsFunc(holdings(), func(h holding) bool { return h.table == table })
			err = s.DeleteAccount(ctx, id)
			relaytest.Equal(t, "whether the row prevents the deletion", relay.KindOf(err) == relay.KindInvalid, prevents)
			if prevents {
				relaytest.NoError(t, s.db.Run(ctx, "test", "DELETE FROM "+table+" WHERE account = $1", id), s.DeleteAccount(ctx, id))
			}
			rowCount := relaytest.Must(db.Value[int64](ctx, s.db, "test", "SELECT COUNT(*) FROM "+table+" WHERE account = $1", id))(t)
			relaytest.Equal(t, "the number of remaining rows", rowCount, 0)
		})
	}
}

// insertOf returns the statement that inserts a row of account $1 into a table.
func insertOf(t *testing.T, s *Store, table string) string {
	t.Helper()
	columns := relaytest.Must(db.Values[string](t.Context(), s.db, "test", "SELECT name FROM pragma_table_info('"+table+"') WHERE pk = 0 OR type <> 'INTEGER'"))(t)
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "1"
		switch column {
		case "account":
			values[i] = "$1"
		case "expires":
			values[i] = "0"
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// The trigger stands for a transaction that saves a message between the check and the deletion.
func TestAMessageThatArrivesDuringADeletionPreventsIt(t *testing.T) {
	ctx := t.Context()
	s := NewStore(dbtest.Open(t, db.Options{}))
	for _, trigger := range []string{"credit", "alarm_mute"} { // tables deleted before and after message
		id := relaytest.Must(s.AddAccount(ctx, Account{Name: trigger}, withCredit(0)))(t)
		if trigger != "credit" {
			relaytest.NoError(t, s.db.Run(ctx, "test", insertOf(t, s, trigger), id))
		}
		insert := strings.ReplaceAll(insertOf(t, s, "message"), "$1", "OLD.account")
		relaytest.NoError(t, s.db.Run(ctx, "test", "CREATE TRIGGER arrival AFTER DELETE ON "+trigger+" BEGIN "+insert+"; END"))
		dbtest.WantKind(t, s.DeleteAccount(ctx, id), relay.KindInvalid)
		relaytest.NoError(t, s.db.Run(ctx, "test", "DROP TRIGGER arrival"), s.DeleteAccount(ctx, id))
	}
}

// jsonPreventsDeletion inserts rows that have the account in their JSON only.
func jsonPreventsDeletion(t *testing.T, s *Store) {
	ctx := t.Context()
	id, err := s.AddAccount(ctx, Account{Name: "acme"}, withCredit(0))
	relaytest.NoError(t, err)
	for table, statement := range map[string]string{
		"admin_user":  `INSERT INTO admin_user (id, name, version, doc) VALUES ('u', 'carl', 1, $1)`,
		"part":        `INSERT INTO part (grp, id, number, digest, message, doc) VALUES ('g', 'p', 1, '', '', $1)`,
		"part_parked": `INSERT INTO part_parked (grp, event, id, doc, expires) VALUES ('g', 'e', 'm', $1, 0)`,
	} {
		doc := fmt.Sprintf(`{"ID":"1","Account":%d,"name":"carl","account":%d}`, id, id)
		relaytest.NoError(t, s.db.Run(ctx, "test", statement, doc))
		dbtest.WantKind(t, s.DeleteAccount(ctx, id), relay.KindInvalid)
		relaytest.NoError(t, s.db.Run(ctx, "test", "DELETE FROM "+table))
	}
	relaytest.NoError(t, s.DeleteAccount(ctx, id))
}

// A deletion that waits for the lock of the ids has not locked the account. PutAccounts takes
// these locks in the same order; otherwise the two transactions could deadlock.
func TestDeletionLocksIDsBeforeTheAccount(t *testing.T) {
	const (
		countWaiting = `
			SELECT COUNT(*)
			FROM pg_stat_activity
			WHERE datname = current_database()
			  AND wait_event_type = 'Lock'`
		lockAccount = `
			SELECT id
			FROM account
			WHERE id = $1
			FOR UPDATE NOWAIT`
	)
	ctx := t.Context()
	s := NewStore(dbtest.Open(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t)}))
	id := relaytest.Must(s.AddAccount(ctx, Account{ID: 9, Name: "acme"}, withCredit(0)))(t) // the deletion changes the last id
	deleted := make(chan error, 1)
	relaytest.NoError(t, s.db.Write(ctx, "test", func(ctx context.Context, tx *db.Tx) error {
		if _, err := db.Value[int64](ctx, tx, "test", lockIDs); err != nil {
			return err
		}
		go func() { deleted <- s.DeleteAccount(t.Context(), id) }()
		for waiting := 0; waiting == 0; {
			waiting = relaytest.Must(db.Value[int](ctx, s.db, "test", countWaiting))(t)
		}
		_, err := db.Value[int64](ctx, tx, "test", lockAccount, id)
		return err
	}))
	relaytest.NoError(t, <-deleted)
}
