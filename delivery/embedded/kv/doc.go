// Package kv is the store of a site that has configured none: a server that
// speaks the Redis protocol inside the daemon's own process and keeps its state
// in a directory. The same client, queue and scripts run on it as on a real
// Redis; commands and replies follow the Redis 7 command reference as far as
// miniredis implements them.
//
// What it promises: a reply is sent only when every write that it can have seen
// is on disk, so whatever a client was told survives kill -9 and a power cut.
// Commands run one at a time; the order in which they ran is the order of the
// log. A script or a transaction is one record of the log, so it is there whole
// or not at all. Time-dependent commands are logged with their time and replay
// exactly; a key that expired is logged as deleted.
//
// What it refuses, with an error that says so: WATCH, blocking pops, SPOP,
// field expiry (HEXPIRE, HSETEX), MOVE, COPY, other databases than 0, consumer
// groups of streams, HyperLogLog, DUMP and RESTORE, pattern subscriptions. The
// log of a directory belongs to one process at a time.
//
// What it is good for: a small site, up to about 50,000 waiting deliveries. All
// data is in memory, LPUSH and ZRANGEBYSCORE take time in proportion to the
// length of the list or the set, a script costs about 0.2 ms, and nothing stops
// a script that does not end. While the log is compacted, the first change of a
// key waits until the whole key is copied, 2 ms for each thousand records of a
// hash: a million messages that are kept are two seconds. Beyond that, configure
// a Redis server.
package kv
