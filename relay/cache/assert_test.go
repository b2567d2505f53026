package cache

import (
	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

var (
	_ iot.Cache          = (*IoT)(nil)
	_ outbox.Breakers    = (*Breakers)(nil)
	_ asynq.RedisConnOpt = (*DB)(nil)
)
