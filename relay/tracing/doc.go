// Package tracing provides spans of traffic. A span names its parent in the form of W3C Trace
// Context, which is stored in journal entries, deliveries and messages.
//
// Whether a trace is sampled depends on its id, so that all gateways decide alike. A nil
// Tracer measures and allocates nothing.
package tracing
