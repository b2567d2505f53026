// Package redis is the Redis of a gateway for which none is configured:
// miniredis in this process, in memory, without files and without a listener.
// What it holds is lost when the process ends, which is what the gateway expects
// of every Redis.
//
// It runs what asynq and relay/cache need: plain commands, transactions, scripts,
// publish and subscribe, expiry within a second or two.
package redis
