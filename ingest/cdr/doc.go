// Package cdr is the surface that switches post the records of calls to and SIM
// operators those of what SIMs used, and the processor that keeps them.
//
// What can be read is journalled as it came and only then answered; the processor
// behind reads it again. A post of which nothing can be read is refused with 422;
// where some records cannot, or are of a SIM that the account does not have, the
// others are kept and the event is quarantined with the places. The formats are
// those of decoders/cdr.
package cdr
