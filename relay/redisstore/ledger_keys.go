package redisstore

import "github.com/penstock/penstock/relay/account"

// The keys of ledgers, tokens and entries; see keys.go.

// keyLedgers is a hash: ledger id → JSON of ledger.Ledger.
func keyLedgers(acct account.ID) string { return tag(acct) + ":ledgers" }

// keyLedgerHashes is a hash: ledger id → its hash. What is in it never changes.
func keyLedgerHashes(acct account.ID) string { return tag(acct) + ":ledger:hashes" }

// keyLedgerKeyset is a string: the account's keyset, wrapped by a master key.
func keyLedgerKeyset(acct account.ID) string { return tag(acct) + ":ledger:keyset" }

// keyLedgerSecrets is a hash: name → something sealed, of an account.
func keyLedgerSecrets(acct account.ID) string { return tag(acct) + ":ledger:secrets" }

// keyLedgerPrivate is a string: the sealed private token that a job made.
// Expires.
func keyLedgerPrivate(acct account.ID, jobID string) string {
	return tag(acct) + ":ledger:private:" + jobID
}

// keyLedgerHome is a string: the id of the account that has a token.
func keyLedgerHome(tokenID string) string { return "ledger:home:" + tokenID }

// keyLedgerToken is a hash, one token. Fields:
//
//	static    JSON of what never changes
//	claimed   how often it was claimed
//	appended  JSON objects of the metadata added since, each with a comma after it
//	job:<id>  of a job that claimed it, or appended to it
func keyLedgerToken(acct account.ID, tokenID string) string {
	return tag(acct) + ":ledger:token:" + tokenID
}

// keyLedgerOf is a list: the sequences of the entries of a token.
func keyLedgerOf(acct account.ID, tokenID string) string {
	return tag(acct) + ":ledger:of:" + tokenID
}

// keyLedgerEntries is a hash: sequence → the bytes of an entry. Never changed.
func keyLedgerEntries(acct account.ID, ledgerID string) string {
	return tag(acct) + ":ledger:entries:" + ledgerID
}

// keyLedgerLog is a hash, how the log of a ledger stands: entries → how many
// there are, sealed → how many of these the head covers, head → the signed head.
func keyLedgerLog(acct account.ID, ledgerID string) string {
	return tag(acct) + ":ledger:log:" + ledgerID
}

// keyLedgerTree is a hash: index of a stored hash, as tlog counts them → its 32
// bytes.
func keyLedgerTree(acct account.ID, ledgerID string) string {
	return tag(acct) + ":ledger:tree:" + ledgerID
}
