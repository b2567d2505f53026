// Package redis runs miniredis in this process, for a gateway without a Redis: in
// memory, without files and without a listener. The data is lost when the process ends: the
// gateway can rebuild all data in Redis (docs/adr/0013-redis-is-disposable.md).
//
// The server supports the commands that asynq and relay/cache use: plain commands,
// transactions, scripts, publish and subscribe, and expiry. An expired key is removed within
// about a second, or later if the server has many keys.
package redis
