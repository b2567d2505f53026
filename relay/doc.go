// Package relay is the kernel of the domain: kinds of errors, identifiers, phone numbers, leases,
// functions for waiting, and pages of lists.
//
// It has no transport or store. The packages below it have the rules, records and states of the
// domain. They import relay and the decoders, never ingest or delivery.
package relay
