// Package queue delivers the records of the outbox: it makes first attempts at once, in
// process, and retries when package timer requests it or a reconciler finds that one is due.
// Each attempt requires the record's lease (package lease). Attempts, delays and final states
// are the record's; the timer has none of them.
//
// A delivery comes to its endpoint's queue (inFlight.admit) in four ways:
//
//	Dispatch        it was created, under a lease: its first attempt
//	onTimer         asynq says that it is due: a retry. Only scheduleLoop makes these tasks
//	attemptDue      the reconciler listed it as due, whether or not asynq has called; or it
//	                is the next one of an ordered queue
//	startParked     its endpoint's breaker has closed, or a probe is due
//
// Each HTTP endpoint, and each endpoint with a pace, has a queue of its own, so that an
// endpoint that hangs delays no other. Mails without a pace share the queue "mail", because
// they go to the operator's mail server; SMS without a pace share the queue "sms".
// Deliveries that do not fit in memory stay in the store. Consecutive failures of an
// endpoint open its breaker, also in a shared queue: its deliveries are parked in the store until a probe succeeds.
package queue
