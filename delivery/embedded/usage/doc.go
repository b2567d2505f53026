// Package usage keeps what SIMs used in a SQLite database in the data directory;
// why not in Redis is in docs/adr. It is a usage.Counters, a usage.Records and a
// usage.Reports.
//
// What Put has returned is on disk, and in the totals: a record and what it adds
// are one transaction, so that an id counts once whatever is killed or replayed.
// Records stand by account, SIM and time. Reading goes in pages, so that a file of
// millions of records holds neither memory nor the log of the database.
package usage
