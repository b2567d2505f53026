// Package cdr accepts call records from switches and usage records from SIM operators,
// and has the processor that saves them. The formats are those of decoders/cdr.
// A post is journalled unchanged before it is answered; the processor parses it again. A post
// without a valid record is refused with 422, unless one of its records is impossible
// (decoders/cdr.IsImpossible). If only some records are invalid, or belong to a SIM that the
// account does not have, the others are saved and the event is quarantined with the reasons.
package cdr
