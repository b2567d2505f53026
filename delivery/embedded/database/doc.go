// Package database opens the SQLite databases of the data directory: one
// connection that writes, durably with each commit, and a few that read beside it
// (https://sqlite.org/wal.html).
//
// A database that a newer version of the gateway made is refused.
package database
