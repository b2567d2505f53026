// Package operator reaches whoever operates the SIMs of an account: it has their
// state and services changed, and brings messages to them.
//
// The HTTP back end speaks the protocol of docs/operator.md. What is asked for
// carries an Idempotency-Key, the id of the job or of the delivery, that stays the
// same however often it is asked; whatever is no answer of the protocol counts as
// an operator that is down, since a mistake in a configuration must not end what
// waits. The simulator is delivery/embedded/operator.
//
// Messages are brought to a SIM only while the relay that they came by says so:
// one whose action is no longer mvno is refused for good, and its message waits
// for a person (specification 1, endpoint 11).
package operator
