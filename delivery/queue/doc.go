// Package queue delivers the records of the outbox. It makes first attempts at once, in
// process, and retries when package timer calls it or a reconciler finds a due delivery. Each
// attempt requires the record's lease (package lease). Attempts, delays and final states are
// stored in the record, not in the timer.
//
// Deliveries are added to the queue of their endpoint (inFlight.admit) by:
//
//	Dispatch        first attempts of deliveries that were created with a lease
//	onTimer         retries that are due according to asynq; scheduleLoop creates the tasks
//	attemptDue      deliveries that the reconciler listed as due, and the next delivery of an
//	                ordered queue
//	startParked     parked deliveries whose breaker has closed or may be probed, or whose
//	                ParkedUntil has passed
//
// Each HTTP endpoint, and each endpoint with a pace, has a queue of its own, so that an
// endpoint that hangs delays no other. Mails without a pace share the queue "mail", because
// they go to the operator's mail server; SMS without a pace share the queue "sms".
// Deliveries that do not fit in memory stay in the store. Consecutive failures of an endpoint
// open its breaker, also in a shared queue. The deliveries of the endpoint are then parked in
// the store until a probe succeeds.
package queue
