// Package readings keeps readings in SQLite, in the data directory: the
// reading store of a gateway for which no InfluxDB is configured.
//
// A batch that Write has returned for survives a crash and a power failure: each batch
// is one transaction, and its commit is synchronised to disk (WAL, synchronous=FULL).
// One connection writes while several read.
//
// It refuses numbers that are not finite, points without a sensor type and times beyond
// 64-bit nanoseconds, as InfluxDB does, and a file of a newer version.
package readings
