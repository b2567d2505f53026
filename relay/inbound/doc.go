// Package inbound decides where a received short message goes.
//
// A relay belongs to a virtual number or to a geographic prefix and has one
// action (specification 1, relay objects and events 3 to 5). An exact virtual
// number wins over the longest prefix; each parameter of the action becomes one
// delivery, whose placeholders are replaced in one pass and escaped for where
// they stand. Decide is a pure function; Service saves the decision.
//
// It refuses an action that it cannot perform, rather than accept it and drop its
// messages. A message that no relay takes is unrouted, with the reason, and can be
// processed again: every id derives from the message, so that a second time changes
// nothing.
//
//	message ─ claim ─┬─ whole ──────────────────────▶ route ─┬─▶ deliveries, inbox
//	                 └─ part ─ waits ─┬─ all parts ────▶ route │
//	                    JoinWait      └─ some parts ───▶ route └─▶ unrouted; parts are parked
//
// Options.JoinWait is five minutes unless it is configured.
//
// Store keeps the relays, the carriers' ids seen, the inboxes of desktopsms relays, and the
// parts of messages until all have come. The rules by which parts make a message are in
// group.go and have no SQL; partstore.go loads the groups of a batch under their locks,
// applies the rules and writes what they changed.
package inbound
