// Package message holds what accounts send: it checks an order, cuts it into
// parts, charges for them and keeps each until a carrier has it and the network
// has said what became of it (specification 1, SOAP operations and endpoints 1
// to 6, events 1 and 2).
//
// A Message goes to one destination and has one or more parts; a part costs one
// credit, is an entry of the pending list and has a state of its own. An order
// is saved, charged and queued in one atomic step, or nothing of it is. What is
// queued is claimed under a lease; before a part is handed to a carrier that is
// written down, so that after a crash nobody sends again what may have been
// sent.
//
// It refuses an order that breaks a rule with the parameters that do
// (relay.KindInvalid) and one that the credit does not pay for
// (relay.KindNoCredit).
package message
