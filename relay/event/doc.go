// Package event describes the records of the journals (events) and stores the statuses of events
// that are not done, or that are done with an outcome or notes.
//
//	pending → done
//	        → quarantined   failed because of its content; can be replayed
//	        → unrouted      a message without a relay, or a receipt without a message
//	        → pending       deferred; processed again
package event
