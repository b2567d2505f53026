// Package inbound joins the parts of received short messages, selects a relay for each
// message and creates its deliveries.
//
// A relay belongs to a virtual number or to a geographic prefix and has one
// action (specification 1, relay objects and events 3 to 5). An exact virtual
// number takes precedence over the longest prefix. Each URL or mail address of the action becomes
// one delivery, the action mvno one to the SIM of the relay. The placeholders of a URL are replaced
// in one pass and escaped for their position. Decide is a pure function; Service saves the decision.
//
// An invalid action is refused when it is saved, so that no messages are lost to it. A
// message without a matching relay is unrouted, with the reason. Every message can be
// processed again: ids derive from the message, so that processing it again changes nothing.
//
//	message ─ claim ─┬─ whole ──────────────────────▶ route ─┬─▶ deliveries, inbox
//	                 └─ part ─ waits ─┬─ all parts ────▶ route │
//	                    JoinWait      └─ some parts ───▶ route └─▶ unrouted; parts are parked
//
// Store has the relays, the carriers' ids of messages, the inboxes of desktopsms relays, and
// the parts of incomplete messages. group.go has the rules for joining parts, without SQL;
// partstore.go locks and loads the groups of a batch, applies the rules and saves the changes.
package inbound
