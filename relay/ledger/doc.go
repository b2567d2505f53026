// Package ledger has the ledgers of accounts and the tokens on them, after
// document 3 of the specification.
//
// A ledger is an append-only history. Every event (a token generated, claimed,
// annotated) is an entry; entries are the leaves of a Merkle tree whose head is
// signed by the ledger's key, so that an entry that was changed, removed or put
// elsewhere is detected, by the gateway and by anyone with an export.
//
// A token is an unguessable text. The database has its id, the SHA-256 of the text; the
// text itself is only in the sealed result of the job that made it. A token
// that is not there, one of another account and one with a wrong private token
// are refused alike.
//
// Generation, claims and metadata are jobs. Each may run twice: an entry names
// the job it came from, and a job adds none twice.
package ledger
