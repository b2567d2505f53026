// Package cache keeps in Redis what can be rebuilt, and is the only door to
// go-redis: marks of frames seen, posts of one frame, latest
// values and when devices were heard (IoT), breakers that are open (Breakers).
// asynq gets its own connections from DB.MakeRedisClient.
//
// Redis may be emptied, fail over or be replaced at any moment, so nothing here
// is a record: callers go on without it, and what they read may be missing. All
// of it expires.
//
// One code path serves Redis 6.2 and later, Sentinel, Cluster and the embedded
// server: plain commands in pipelines, no scripts. Where two gateways change the
// same thing at once, it is written so that the order does not matter: a field
// for each value, of which readers take the newest, or a sorted set whose scores
// only grow. The hash tag of an account's keys puts them into one slot.
package cache
