// Package redisstore keeps the records of every part in Redis, and is the only
// door to go-redis.
//
// One code path serves all of Redis 6.2 or later, Sentinel, Cluster and the
// embedded server: plain commands and scripts over the keys of keys.go, whose
// hash tags put what one script touches into one slot. A script that a server
// does not know is sent whole (see eval). It refuses nothing at start: while
// Redis is down every call answers relay.KindUnavailable, and Check says what
// is wrong with a server that is there.
package redisstore
