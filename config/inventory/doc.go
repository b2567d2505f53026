// Package inventory reads and checks the documents that declare accounts and their records
// (tokens, relays, locations, decoders, rules, SIMs, trunks and ledgers), sensor types, and the
// networks of the simulated lookup.
//
// Parse checks the fields of a document, its references and its unique values, also against
// the records of earlier inventories. A document with a mistake is refused whole, with all
// mistakes and their paths. Records that a document omits stay: Merge returns the declared
// records after an apply, and Omitted the records that a prune removes. relay/inventory applies
// documents; Mode and ApplyResult are the options and the result of an apply.
//
// Seal replaces tokens and SOAP passwords by hashes, because they are only compared. Mask
// hides all secrets. Parse replaces a mask by the secret of the same record.
package inventory
