// Package ledger keeps the ledgers of accounts and the tokens on them, after document 3 of the
// specification.
//
// A ledger is an append-only history. Every event (a token is generated, claimed, annotated)
// is an entry. Entries are the leaves of a Merkle tree, whose head the ledger's key signs:
//
//	entry added ──▶ log (Entries) ──signEntries──▶ signed (Signed, Head) ──examine──▶ kept (Heads)
//
// A gateway writes each entry with a MAC that also covers the token's entry before it. The
// last head is kept outside the database. An entry that was changed, removed or moved is
// therefore detected by the gateway, and by anyone with an export. The service then raises an
// alarm, and operations on the ledger or the token fail with relay.KindUnavailable:
//
//	trusted ──entries or head differ──▶ alarm ──store matches the head, or Accept──▶ trusted
//
// A token is an unguessable text. The database has its id, the SHA-256 of the text; only the
// sealed input of the job that made the token has the text:
//
//	generated ──claim──▶ claimed (Claims of Limit) ──ExpiresAt──▶ expired
//
// Service has the operations: Generate, Claim and Annotate start jobs; History, Validate and
// Follow read tokens; Verify, Audit, Export, Lost and Accept are about whole ledgers. A job may
// run twice: an entry names its job, and a job adds no entry twice.
//
// The package refuses a missing token, one of another account and one with a wrong private
// token alike. It deletes neither entries nor ledgers with entries.
package ledger
