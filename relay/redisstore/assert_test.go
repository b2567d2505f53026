package redisstore

import (
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

var (
	_ iot.Store     = (*IoT)(nil)
	_ account.Store = (*Accounts)(nil)
	_ event.Marks   = (*Marks)(nil)
)
