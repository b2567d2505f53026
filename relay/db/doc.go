// Package db is the core of the record store: it opens the database,
// migrates its schema and runs statements. The statements themselves stand in the
// packages below it, one a domain, which are the implementations of the domain's
// ports. It is the only door to pgx, the SQLite driver and goose.
//
// # Engines
//
// SQLite (write-ahead log, synchronous=FULL) in the data directory, or
// PostgreSQL 13 and later. One code path serves both; what differs is in
// dialect.go: how a batch of rows is handed to a statement, and the few words in
// braces that each engine has its own for. What a Write has returned is on disk.
//
// # Statements
//
// List, One, Value, Values, Map and Numbered read, and Page reads a list by the
// conditions of Where; Run changes, Exec counts the changed rows, and MustChange and
// ChangeOr fail if there are none; Returning reads what it changes; Write and Transact
// run several statements as one, RunAll some that go one after another. A statement
// works on one row by its parameters, or on many by a Batch, in one round trip. Both
// take the domain's own types, and a function that lists pointers to the fields of a
// value serves to read rows (List) and to write them (BatchOf). Statements stand where
// they are used; Upsert and UpsertAll write the usual ones, SweepExpired deletes the
// rows that have expired, and Documents keep records whole, as JSON.
//
// # Plans
//
// A statement has one plan, with any amount of rows and whatever the engine believes of
// them: SQLite has no statistics, and those of PostgreSQL are older than a burst. A batch
// has the whole key of the rows that are looked up, the account too, and joins are by
// nested loops, see prepareSession. A column that is compared beside the key and has an
// index is written as an expression (due + 0). What is taken in an order is
// the first of an index, by a statement with LIMIT for each account. The accounts or
// endpoints of which something waits are found by a recursive query, a step each.
//
// # Isolation and locks
//
// Every Write is one transaction. On SQLite there is one writer: transactions
// run one after another, and those that wait are committed together, each under
// a savepoint of its own, so that the failure of one undoes that one only. On
// PostgreSQL the isolation is READ COMMITTED; a transaction that reads what it
// changes locks those rows first ({for update}), in the order of their keys, and
// locks rows of several tables in this order: rule, job, SIM, message, delivery,
// credit. Deadlocks and serialization failures (40P01, 40001) are retried whole, a
// few times. A transaction may therefore run more than once, and a commit whose
// answer was lost may have happened: every one is safe to repeat by its keys.
// Outside of a Write, each statement sees what was committed before it began.
//
// # Errors
//
// A row that is not there is relay.KindNotFound. A database that is down, full,
// busy, read-only or that does not let us in is relay.KindUnavailable, with what
// to do about it. All else is unexpected.
package db
