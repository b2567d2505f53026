package account

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// holding describes rows that prevent the deletion of their account, because they would be lost.
type holding struct {
	table       string
	description string // of the rows, for the error
	condition   string // selects the rows of the account
}

// holdings returns the holdings in tables with a column account.
func holdings() []holding {
	return []holding{
		{"credit", "credit", "balance <> 0"},
		{"credit_entry", "a history of credit", "reason NOT IN ('opened', 'reset', 'adjusted')"}, // entries by operators do not count
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
	}
}

// disposableTables returns the other tables with rows of accounts: settings, caches, and rows
// that belong to rows of a holding.
//
// An account is deleted only without entries in its ledgers. Its keys (ledger_sealed) and
// the empty logs (ledger_log) are kept: gateways cache keys in memory and report a missing
// log. The audit log is kept as well.
func disposableTables() []string {
	return []string{
		"alarm_mute", "decoder", "delivery_attempt", "delivery_dead", "delivery_queue", "device_claim", "ledger", "ledger_home",
		"ledger_token", "ledger_tree", "location", "marker", "message_order", "message_ref", "message_state", "raw_frame", "relay",
		"retired_sensor", "rule", "rule_batch", "rule_enrolment", "rule_item", "rule_state", "rule_watch", "sensor", "sim_count",
		"trunk", "unmapped_key",
	}
}

// DeleteAccount deletes an account with its tokens, its logins and every row of its own, and
// empties the caches of all gateways. Its id is not assigned again; an inventory document that
// declares the id creates a new account without any records.
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
		deleteAccount = `
			DELETE FROM account
			WHERE id = $1`
		selectTokens = `
			SELECT doc, secret
			FROM token`
		deleteTokens = `
			DELETE FROM token
			WHERE hash IN (SELECT hash FROM batch)`
		deleteLogins = `
			DELETE FROM login
			WHERE account = 0
			  AND id IN (SELECT id FROM batch)`
	)
	label := "account " + id.String()
	return s.changeTokens(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		// 1. Lock the assignment of ids, then the account, in the order of PutAccounts. Refuse if
		// anything would be lost.
		lastID, err := db.Value[relay.AccountID](ctx, tx, label, lockIDs)
		if err != nil {
			return err
		}
		if _, err := db.Value[relay.AccountID](ctx, tx, label, lockAccount, id); err != nil {
			return err
		}
		if err := refuseHoldings(ctx, tx, label, id); err != nil {
			return err
		}

		// 2. Find the logins and tokens, which have their account in their documents.
		allLogins, err := logins.All(ctx, tx, 0)
		if err != nil {
			return err
		}
		usernames, hashes := db.NewBatch("id"), db.NewBatch("hash")
		for _, l := range allLogins {
			if l.Account == id {
				usernames.Add(l.Username)
			}
		}
		tokens, err := db.List(ctx, tx, label, selectTokens, tokenFields)
		if err != nil {
			return err
		}
		for _, t := range tokens {
			if t.Account == id {
				hashes.Add(t.Hash)
			}
		}

		// 3. Delete all rows. The version without a name is part of every version.
		statements := []db.Statement{
			db.Do(deleteLogins, usernames), db.Do(deleteTokens, hashes), db.Do(setLastID, max(lastID, id)),
			db.Do(deleteAccount, id), db.Bump(""),
		}
		for _, h := range holdings() {
			statements = append(statements, db.Do("DELETE FROM "+h.table+" WHERE account = $1 AND NOT ("+h.condition+")", id))
		}
		for _, table := range disposableTables() {
			statements = append(statements, db.Do("DELETE FROM "+table+" WHERE account = $1", id))
		}
		if err := tx.RunAll(ctx, label, statements...); err != nil {
			return err
		}

		// 4. Refuse if a record has been added since step 1: holdings are neither locked nor deleted.
		return refuseHoldings(ctx, tx, label, id)
	})
}

// refuseHoldings returns relay.KindInvalid if an account holds anything that its deletion
// would lose.
func refuseHoldings(ctx context.Context, tx *db.Tx, label string, id relay.AccountID) error {
	// These rows have their account only in their JSON.
	checks := []string{
		"SELECT 'parts of messages' WHERE EXISTS (SELECT 1 FROM part WHERE message = '' AND doc LIKE $2)",
		"SELECT 'parts of messages' WHERE EXISTS (SELECT 1 FROM part_parked WHERE doc LIKE $2)",
		"SELECT 'users' WHERE EXISTS (SELECT 1 FROM admin_user WHERE doc LIKE $3 OR doc LIKE $4)",
	}
	for _, h := range holdings() {
		const check = "SELECT '%s' WHERE EXISTS (SELECT 1 FROM %s WHERE account = $1 AND %s)"
		checks = append(checks, fmt.Sprintf(check, h.description, h.table, h.condition))
	}
	query := strings.Join(checks, " UNION ") + " ORDER BY 1"
	descriptions, err := db.Values[string](ctx, tx, label, query,
		id, fmt.Sprintf(`%%"Account":%d,%%`, id), fmt.Sprintf(`%%"account":%d,%%`, id), fmt.Sprintf(`%%"account":%d}%%`, id))
	if err == nil && len(descriptions) > 0 {
		err = relay.Invalid("account", "The account holds "+strings.Join(descriptions, ", ")+".")
	}
	return err
}
