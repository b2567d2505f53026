// Package inventory applies the documents that declare accounts and their records (tokens, logins,
// relays, locations, decoders, rules, SIMs, trunks and ledgers), sensor types, and the networks
// of the simulated lookup.
//
// config/inventory reads and checks a document, and this package saves its records. A document
// with a mistake changes nothing. Changes over the REST API and by traffic stay unless the apply resets
// them. Only a prune removes records that a document omits.
package inventory
