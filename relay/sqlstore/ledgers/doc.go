// Package ledgers keeps ledgers, their tokens, entries and secrets in the record
// store; it is a ledger.Store, and with that a vault.Store.
//
// An entry is numbered under the lock of its ledger's log, after its token was
// locked. Its unique key (token, job) is why a job that runs twice adds one entry.
// The hashes of the tree follow the entries, see docs/adr.
package ledgers
