package devices

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

var (
	_ iot.Store = (*Store)(nil)
	_ inventory = (*Store)(nil)
)

// inventory is what an inventory needs besides.
type inventory interface {
	PutSensorType(ctx context.Context, t iot.SensorType) error
	DeleteSensorType(ctx context.Context, id string) error
	PutLocation(ctx context.Context, acct relay.AccountID, l iot.Location) error
	DeleteLocation(ctx context.Context, acct relay.AccountID, id string) error
	DeleteDecoder(ctx context.Context, acct relay.AccountID, id string) error
}
