// Package db provides the database of records: it opens the database, migrates the schema
// and runs statements. The packages of the domains contain the statements. No other package of
// the gateway imports pgx or goose.
//
// # Engines
//
// The engine is SQLite (write-ahead log, synchronous=FULL) in the data directory, or
// PostgreSQL 13 and later. One code path serves both. dialect.go has the differences: how a
// statement gets a batch of rows, and the words in braces, such as {for update}, which each
// engine replaces. When Write returns nil, the changes are on disk.
//
// # Statements
//
//	read             List, One, Value, Values, Map, Numbered; Page with the conditions of Where
//	change           Run; Exec counts the changed rows; MustChange and ChangeOr fail if no row changes
//	change and read  Returning
//	transaction      Write, Transact; RunAll for a sequence of statements
//	common forms     Upsert, SweepExpired; Documents for records as JSON
//
// A statement works on one row by its parameters, or on many rows by a Batch, in one round
// trip. Both accept the types of the domain. A function that returns pointers to the fields
// of a value reads rows (List) and writes them (BatchOf).
//
// # Plans
//
// A statement has one plan for any number of rows, independent of statistics: SQLite has no
// statistics, and the statistics of PostgreSQL are older than a burst. A batch contains the whole key of
// the rows, including the account, and joins use nested loops (see servers.prepare). A
// statement that compares an indexed column in addition to the key writes the column as an
// expression (due + 0), which excludes the index. A statement that takes rows in an order
// reads the first entries of an index, with LIMIT, for one account. A recursive query finds
// the accounts or endpoints that have waiting rows, with one step for each.
//
// # Isolation and locks
//
// Every Write is one transaction. SQLite has one writer: transactions run one after
// another, and waiting transactions are committed together. Each has its own savepoint, so
// that a failure undoes only its own changes. PostgreSQL uses READ COMMITTED. A transaction
// that reads rows and changes them locks them first ({for update}), in the order of their
// keys. It locks rows of several tables in this order: rule, job, SIM, message, delivery,
// credit.
//
// After a deadlock, a serialization failure (40P01, 40001) or a migration of its tables, the whole
// transaction runs again, at most eight times in all. A transaction may therefore run more than
// once, and a commit whose answer was lost may have happened: keys make every transaction safe to
// repeat. Outside of a Write, each statement sees the changes that were committed before it began.
//
// # Errors
//
// The error of a missing row is relay.KindNotFound. The error of a database that is down,
// full, busy, read-only or refuses the connection is relay.KindUnavailable; most of these errors
// have advice for the operator. Other errors are unexpected.
package db
