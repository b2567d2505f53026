// Package relay is the kernel of the domain: kinds of errors, identifiers, and pages of lists.
//
// It has no transport, store or clock. The packages below it have the rules, records and states
// of the domain. They import relay and the decoders, never ingest or delivery.
package relay
