// Package influx stores readings in InfluxDB 1.8, 2.x and compatible servers. It
// is the only package that uses influxdb-client-go.
//
// A store uses the line protocol, the write API of InfluxDB 2 (which 1.8 serves too) and, for
// reading, InfluxQL on 1.x and Flux on 2.x. It queries the server for the version. Writes are
// synchronous: a point is stored once the server has responded with 204. Points that the
// server permanently refuses are found by halving the batch, and returned with the server's
// reason.
//
// The store refuses numbers that are not finite, points without a sensor type, and
// times that do not fit in 64 bits as nanoseconds. It never writes integers: the
// first one would fix the field's type, and every later 21.5 would be lost.
package influx
