// Package ledger provides the ledgers of accounts and the tokens on them.
//
// A ledger is an append-only history. Every event (a token is generated, claimed, annotated)
// is an entry. Entries are the leaves of a Merkle tree, whose head the ledger's key signs:
//
//	entry added ──▶ log (Entries) ──signEntries──▶ signed (Signed, Head) ──examine──▶ stored in Heads
//
// A gateway writes each entry with a MAC that also covers the token's previous entry. Heads
// stores the last head outside the database. The gateway, and anyone with an export, can
// therefore detect that an entry was changed, removed or moved. The service then raises an
// alarm, and operations on the ledger or the token fail with relay.KindUnavailable:
//
//	trusted ──entries or head differ──▶ alarm ──store matches the head, or AcceptHeads──▶ trusted
//
// A token is an unguessable text. The database has the token's id, which is the SHA-256 of the
// text. Only the sealed inputs of jobs and the deliveries of claim events contain the text:
//
//	generated ──claim──▶ claimed (Claimed of Limit) ──ExpiresAt──▶ expired
//
// Service has the operations: Generate, Claim and Annotate start jobs; History, Validate and
// RedirectTarget read tokens; Verify, Audit, Export, LostLedgers and AcceptHeads work on whole
// ledgers. A job may run twice, but adds each entry once, because an entry names its job.
//
// An unknown token, a token of another account and a wrong private token return the same error.
// The package deletes neither entries nor ledgers with entries.
package ledger
