// Package inventory reads the document that declares accounts and what belongs
// to them: tokens, relays, locations, decoders, SIMs, trunks and ledgers, in
// addition to sensor types and the networks of the simulated lookup.
//
// It is plain data: strings and numbers, checked for shape and for references
// and claims within itself and against what earlier inventories declared. The
// whole document is refused when anything in it is wrong, with every mistake and
// its path. Nothing that a document omits is removed; Merge and Omitted say what
// stands after it and what a prune would take away. Mode and Applied say how
// relay/inventory is to apply a document, and what it did.
//
// Secrets: Seal keeps tokens and SOAP passwords as hashes, because they are only
// compared; Mask hides every secret, and Parse puts the known one back where a
// mask is handed in again.
package inventory
