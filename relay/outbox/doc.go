// Package outbox provides deliveries: requests, mails and messages to external systems.
//
// A Delivery is the authoritative record of one of them: its content, its state and
// every attempt. It is saved before it is sent, so that after a crash at any instant a
// worker finds the record. asynq only provides the timer of the next attempt.
//
//	queued ──┬──────────────▶ delivered, simulated
//	   ▲     ├──▶ retrying ─▶ delivered, simulated
//	   │     └──────┴───────▶ dead
//	   └── Replay ─── delivered, simulated, dead
//
// Sender is the way in: it saves deliveries under a lease, and has the first attempt of
// each made at once. Caller and Mailer make the deliveries of events and notices. A package
// that creates deliveries in its own transaction calls Create, then Dispatch.
//
// # Writes
//
// Every delivery is written twice: when it is created, leased to the gateway that
// makes the first attempt at once, and when its outcome is recorded. Both take
// batches: the usual case is one insert, and one insert of the attempts with one update
// of the deliveries and one of the counts. Ordered endpoints, dead deliveries, and outcomes
// that come twice or after the end take further statements, only when a batch has some.
//
// An attempt is a row whose key is the delivery and the time: an outcome that comes
// twice finds its attempt there. Each secondary index of deliveries costs at both
// writes; rare values have partial ones, see the migration. The deliveries that have
// ended are counted when they end, because there are too many to count for each request.
//
// A statement with a batch must find its rows by their keys. PostgreSQL chooses by its
// statistics, which do not include a burst, so conditions on columns with an index of their
// own (state, due, place) are written so that no index is read for them.
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
// are matched in Go, in any case and any script: among dead deliveries, whose lower-cased
// texts have a narrow table, after a scan of it; among all others after a scan of the
// deliveries themselves, which ends after a while with a page that is not full and the
// cursor where it goes on. A trigram index was not needed: 100,000 dead deliveries are
// searched in about 0.1 s.
package outbox
