// Package tracing follows traffic through the gateway: each step is a span, whose
// parent is named as W3C Trace Context does, in the journal entry, the delivery and the
// message that lead to the step.
//
// Whether a trace is kept follows from its id, so that all gateways decide alike.
// Without a Tracer nothing is measured, and nothing is allocated.
package tracing
