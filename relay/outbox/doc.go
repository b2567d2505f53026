// Package outbox holds deliveries: requests, mails and messages to external systems.
//
// A Delivery is the authoritative record of one of them: its content, its state and
// every attempt. It is saved before it is sent, so that after a crash at any instant a
// worker finds the record. asynq only provides the timer of the next attempt.
//
// # Writes
//
// Every delivery is written twice: when it is created, leased to the gateway that
// makes the first attempt at once, and when its outcome is recorded. Both take
// batches: the usual case is one insert, and one insert of the attempts with one update
// of the deliveries and one of the counts. What is rare takes further statements, only
// when a batch has it: ordered endpoints, dead deliveries, outcomes that come twice or
// after the end.
//
// An attempt is a row whose key is the delivery and the time: an outcome that comes
// twice finds its attempt there. Each secondary index of deliveries costs at both
// writes; what is rare has partial ones, see the migration. The deliveries that have
// ended are counted when they end, as there are too many to count for each request.
//
// A statement with a batch must find its rows by their keys. PostgreSQL chooses
// by its statistics, which know nothing of a burst, so conditions on what has an
// index of its own (state, due, place) are written so that no index is read for
// them.
//
// # Ordered endpoints
//
// The deliveries of an ordered endpoint stand in a queue and have places in it.
// Places and turns are given out under a lock of the queue's row, so that all
// gateways together attempt one at a time, in one order.
//
// # Lists
//
// Lists are in the order of creation, newest first, read from the index of the
// state or of the account. Kind, relay and number are compared on the way. Texts
// are matched here, in any case and any script, by what package strings says: among
// dead deliveries, whose lower-cased texts have a narrow table, after a scan of it;
// among all others after a scan of the deliveries themselves, which ends after a
// while with a page that is not full and the cursor where it goes on. A trigram
// index was not needed: 100,000 dead deliveries are searched in about 0.1 s.
package outbox
