// Package queue delivers the records of the outbox: it makes first attempts at
// once, in process, and retries when package timer says so or a reconciler finds
// that one is due. Each attempt requires the record's lease (package lease).
// Attempts, delays and final states are the record's; the timer knows none of them.
//
// Each endpoint has a queue of its own, with the pace that its relay configures,
// so that an endpoint that hangs delays no other. Deliveries that do not fit in
// memory stay in the store. Consecutive failures of an endpoint open its
// breaker: its deliveries are parked in the store until a probe succeeds.
package queue
