// Package event describes the records of the journals, and stores the states of those that
// did not simply succeed.
//
//	pending → done
//	        → quarantined   failed for a reason of its own; can be replayed
//	        → unrouted      a message without a relay, or a receipt without a message
//	        → pending       deferred; processed again
package event
