// Package readings keeps readings in SQLite, in the data directory: the
// reading store of a gateway for which no InfluxDB is configured.
//
// What Write has returned for survives a kill at any instant and a loss of
// power: each batch is one transaction, and its commit is synchronised to disk
// (WAL, synchronous=FULL). One connection writes, several read beside it.
//
// It refuses numbers that are not finite, points without a sensor type and
// times that nanoseconds in 64 bits cannot hold, as InfluxDB does, and a file
// that a newer version has made.
package readings
