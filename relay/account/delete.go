package account

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// ownedTable is a table whose rows belong to the account in their column account.
type ownedTable struct {
	name string
	// holding names what the deletion of the account would lose; "" for rows that may go.
	holding string
	// condition selects the rows that are such a holding.
	condition string
}

// ownedTables returns the tables with rows of accounts. Those without a holding have rows in
// addition to those of others, settings, or caches.
//
// An account is deleted only without entries in its ledgers. Its keys (ledger_sealed) and
// the empty logs (ledger_log) stay: gateways hold keys in memory, and report a log that is
// missing. The audit log stays as well.
func ownedTables() []ownedTable {
	return []ownedTable{
		{"credit", "credit", "balance <> 0"},
		{"credit_entry", "a history of credit", "reason NOT IN ('opened', 'reset', 'adjusted')"}, // not what operators set
		{"inbox", "unread messages", "expires = 0"},
		{"alarm", "alarms", "true"},
		{"sim_subscriber", "subscribers", "true"},
		{"sim_pool", "pools", "true"},
		{"message", "messages", "true"},
		{"delivery", "deliveries", "true"},
		{"device", "devices", "true"},
		{"sim", "SIMs", "true"},
		{"job", "jobs", "true"},
		{"sip_call", "call records", "true"},
		{"usage_record", "usage records", "true"},
		{"usage_total", "usage", "bytes > 0"},
		{"ledger_entry", "ledgers with a history", "true"},
		{"event_mark", "deferred, unrouted or quarantined events", "state <> 'done'"},

		{"alarm_mute", "", ""},
		{"decoder", "", ""},
		{"delivery_attempt", "", ""},
		{"delivery_dead", "", ""},
		{"delivery_queue", "", ""},
		{"device_claim", "", ""},
		{"ledger", "", ""},
		{"ledger_home", "", ""},
		{"ledger_token", "", ""},
		{"ledger_tree", "", ""},
		{"location", "", ""},
		{"marker", "", ""},
		{"message_order", "", ""},
		{"message_ref", "", ""},
		{"message_state", "", ""},
		{"raw_frame", "", ""},
		{"relay", "", ""},
		{"retired_sensor", "", ""},
		{"rule", "", ""},
		{"rule_batch", "", ""},
		{"rule_enrolment", "", ""},
		{"rule_item", "", ""},
		{"rule_state", "", ""},
		{"rule_watch", "", ""},
		{"sensor", "", ""},
		{"sim_count", "", ""},
		{"trunk", "", ""},
		{"unmapped_key", "", ""},
	}
}

// DeleteAccount deletes an account with its tokens, its logins and every row of its own, and
// empties the caches of all gateways. Its id is not assigned again; a document that declares
// the id gets an account without anything.
//
// DeleteAccount returns relay.KindNotFound if there is no such account, and
// relay.KindInvalid if it holds anything that would be lost.
func (s *Store) DeleteAccount(ctx context.Context, id relay.AccountID) error {
	const (
		lockAccount = `
			SELECT id
			FROM account
			WHERE id = $1
			{for update}`
		keepID = `
			UPDATE account_id
			SET last = $1
			WHERE last < $1`
		deleteAccount = `
			DELETE FROM account
			WHERE id = $1`
		selectTokens = `
			SELECT doc, secret
			FROM token`
		deleteTokens = `
			DELETE FROM token
			WHERE hash IN (SELECT hash FROM batch)`
	)
	label := "account " + id.String()
	return s.changeTokens(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		// 1. Refuse if anything would be lost.
		if _, err := db.Value[relay.AccountID](ctx, tx, label, lockAccount, id); err != nil {
			return err
		}
		if err := refuseHoldings(ctx, tx, id); err != nil {
			return err
		}

		// 2. Delete logins and tokens: their account is in their documents.
		allLogins, err := logins.All(ctx, tx, 0)
		if err != nil {
			return err
		}
		for _, l := range allLogins {
			if l.Account != id {
				continue
			}
			if err := logins.Delete(ctx, tx, 0, l.Username); err != nil {
				return err
			}
		}
		tokens, err := db.List(ctx, tx, label, selectTokens, tokenFields)
		if err != nil {
			return err
		}
		tokens = slices.DeleteFunc(tokens, func(t Token) bool { return t.Account != id })
		hashes := db.BatchOf("hash", tokens, func(t *Token) []any { return []any{t.Hash} })

		// 3. Delete all other rows. The version without a name is part of every version.
		statements := []db.Statement{db.Do(deleteTokens, hashes), db.Do(keepID, id), db.Do(deleteAccount, id), db.Bump("")}
		for _, t := range ownedTables() {
			deleteRows := "DELETE FROM " + t.name + " WHERE account = $1"
			if t.holding != "" {
				deleteRows += " AND NOT (" + t.condition + ")"
			}
			statements = append(statements, db.Do(deleteRows, id))
		}
		if err := tx.RunAll(ctx, label, statements...); err != nil {
			return err
		}

		// 4. Refuse if something has arrived since 1: it is not locked out, and not deleted.
		return refuseHoldings(ctx, tx, id)
	})
}

// refuseHoldings returns relay.KindInvalid if an account holds anything that its deletion
// would lose.
func refuseHoldings(ctx context.Context, tx *db.Tx, id relay.AccountID) error {
	found, err := holdings(ctx, tx, id)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return relay.Invalid("account", "The account holds "+strings.Join(found, ", ")+".")
	}
	return nil
}

// holdings returns what the deletion of an account would lose. Users, and parts of inbound
// messages that wait for the others, have their account in their JSON only.
func holdings(ctx context.Context, tx *db.Tx, id relay.AccountID) (found []string, err error) {
	const (
		ownedRow = `
			SELECT 1
			FROM %s
			WHERE account = $1
			  AND %s
			LIMIT 1`
		waitingPart = `
			SELECT 1
			FROM part
			WHERE message = ''
			  AND doc LIKE $1
			UNION ALL
			SELECT 1
			FROM part_parked
			WHERE doc LIKE $1
			LIMIT 1`
		boundUser = `
			SELECT 1
			FROM admin_user
			WHERE doc LIKE $1
			   OR doc LIKE $2
			LIMIT 1`
	)
	look := func(holding, query string, arguments ...any) {
		if err != nil {
			return
		}
		var rows []int64
		if rows, err = db.Values[int64](ctx, tx, holding, query, arguments...); len(rows) > 0 {
			found = append(found, holding)
		}
	}
	for _, t := range ownedTables() {
		if t.holding != "" {
			look(t.holding, fmt.Sprintf(ownedRow, t.name, t.condition), id)
		}
	}
	look("parts of messages", waitingPart, fmt.Sprintf(`%%"Account":%d,%%`, id))
	look("users", boundUser, fmt.Sprintf(`%%"account":%d,%%`, id), fmt.Sprintf(`%%"account":%d}%%`, id))
	return found, err
}
