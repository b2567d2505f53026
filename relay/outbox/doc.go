// Package outbox provides deliveries: requests, mails and messages to external systems.
//
// A Delivery is the authoritative record of the content, the state and the attempts. It is
// saved before it is sent, so that after a crash at any instant a worker finds the record.
// asynq only provides the timer of the next attempt.
//
//	queued ──┬──────────────▶ delivered, simulated
//	   ▲     ├──▶ retrying ─▶ delivered, simulated
//	   │     └──────┴───────▶ dead
//	   └── Replay ─── delivered, simulated, dead
//
// Sender saves deliveries under a lease and dispatches their first attempts. Caller and Mailer
// create the deliveries of events and notices. A package that creates deliveries in its own
// transaction calls Create and, after the commit, Sender.Dispatch.
//
// # Writes
//
// A delivery is usually written twice: when it is created, leased to the gateway that makes
// the first attempt, and when the outcome of that attempt is recorded. Both writes are done in
// batches: one insert, and later one insert of the attempts with one update of the deliveries
// and one of the counts. Only batches with ordered endpoints, dead deliveries, or outcomes that
// are repeated or arrive after the delivery has ended need further statements.
//
// The key of an attempt's row is the delivery and the time, so that a repeated outcome is
// recognized. Each secondary index of deliveries has a cost at both writes; rare values have
// partial indexes, see the migration. The deliveries that have ended are counted when they end,
// because there are too many of them to count for each request.
//
// A statement with a batch must find its rows by their keys. PostgreSQL selects the index by
// statistics, which do not include a recent burst. Conditions on columns with their own index
// (state, due, place) are therefore written so that PostgreSQL cannot use that index.
//
// # Ordered endpoints
//
// The deliveries of an ordered endpoint have places in a queue. Places and turns are assigned
// under a lock of the queue's row, so that all gateways together attempt one delivery at a time,
// in one order.
//
// # Lists
//
// Lists are sorted by creation, newest first, and read from the index of the state or of the
// account. Kind, relay and number are compared for each row. Texts are matched in Go,
// ignoring case in all scripts. The texts of dead deliveries are stored in lower case in a narrow
// table, which is scanned first. For other deliveries, the rows themselves are scanned: at a
// limit, the scan ends with a partial page and a cursor. A trigram index is not needed: a search of
// 100,000 dead deliveries takes about 0.1 s.
package outbox
