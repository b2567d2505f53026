// Package inbound keeps in SQL what receiving messages needs: the relays of
// numbers and prefixes, the carriers' ids seen, the inboxes of desktopsms relays,
// and the parts of messages until all have come. Store implements the ports
// Relays, Records, Claims, Inbox and Parts of relay/inbound.
//
// The rules by which parts make a message are in group.go and know no SQL;
// parts.go loads the groups of a batch under their locks, applies the rules and
// writes what they changed.
package inbound
