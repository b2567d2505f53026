// Package influx keeps readings in InfluxDB: 1.8, 2.x, and what speaks like
// them. It is the door of influxdb-client-go.
//
// It follows the line protocol, the write API of InfluxDB 2 (which 1.8 serves
// too) and, for reading, InfluxQL on 1.x and Flux on 2.x; which of the two is
// asked of the server. Writes block: a point counts as stored when the server
// has said 204 for it. Points that the server will never take are found by
// halving the batch, and handed back with the server's reason.
//
// It refuses numbers that are not finite, points without a sensor type and
// times that nanoseconds in 64 bits cannot hold. It never writes integers: the
// first one would fix the field's type, and every later 21.5 would be lost.
package influx
