// Package readings stores readings in SQLite, in the data directory. A gateway uses it
// if no InfluxDB is configured.
//
// A batch survives a crash and a power failure once Write has returned: each batch is
// one transaction, and its commit is synced to disk (WAL, synchronous=FULL). One
// connection writes while several read.
//
// A store refuses numbers that are not finite, points without a sensor type and times beyond
// 64-bit nanoseconds, like the store in package influx, and a file of a newer version.
package readings
