// Package redis runs miniredis in this process, for a gateway without a Redis: in
// memory, without files and without a listener. Its data is lost when the process ends,
// which the gateway expects of every Redis.
//
// It supports what asynq and relay/cache need: plain commands, transactions, scripts,
// publish and subscribe, and expiry within a second or two.
package redis
