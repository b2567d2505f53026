// Package event describes the records of the journals (events) and stores the states of the events
// that are not simply done.
//
//	pending → done
//	        → quarantined   failed because of its content; can be replayed
//	        → unrouted      a message without a relay, or a receipt without a message
//	        → pending       deferred; processed again
package event
