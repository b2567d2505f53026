// Package operator calls the back end of the mobile operator: it changes the
// state and the services of SIMs, and delivers messages to them.
//
// The HTTP back end implements the protocol of docs/operator.md. Requests carry
// an Idempotency-Key, the id of the job or of the delivery, which is the same
// for all retries. A response that does not follow the protocol counts as an
// unavailable operator, because a configuration mistake must not end pending
// jobs. The simulator is delivery/embedded/operator.
//
// A message is delivered to a SIM only while the action of its relay is mvno.
// Otherwise the delivery is dead until it is replayed (specification 1, endpoint 11).
package operator
