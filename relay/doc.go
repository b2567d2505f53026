// Package relay is the kernel of the domain: the kinds of error a caller must
// react to, the identifiers that every part shares, pages of lists.
//
// It has no transport, no store and no clock of its own. Packages below this folder hold the
// rules an operator would argue about; they import relay and the decoders, never ingest or
// delivery.
package relay
