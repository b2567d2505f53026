// Package inventory applies the document that declares accounts and all that belongs to them:
// tokens, logins, relays, locations, decoders, SIMs, trunks and ledgers, in addition to
// sensor types and the networks of the simulated lookup.
//
// config/inventory reads and checks the document; this package makes records of
// it. A document with a mistake is refused whole. Changes made over REST and by
// traffic stand unless the apply resets them, and records that a document omits
// are removed only by a prune.
package inventory
