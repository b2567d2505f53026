// Package cdr is the surface that switches post the records of calls to, and the
// processor that keeps them.
//
// What can be read is journalled as it came and only then answered; the processor
// behind reads it again. A post of which nothing can be read is refused with 422;
// where some records cannot, the others are kept and the event is quarantined with
// the places. The formats are those of decoders/cdr.
package cdr
