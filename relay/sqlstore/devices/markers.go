package devices

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

// PutMarker saves an event marker of a device.
func (s *Store) PutMarker(ctx context.Context, acct account.ID, deviceID string, m iot.Marker, now time.Time) (out iot.Marker, created bool, err error) {
	noun := "marker " + m.ID
	err = s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		out = m
		if err := lock(ctx, tx, acct, deviceID); err != nil {
			return err
		}
		before, err := sqlstore.One(ctx, tx, noun, `
SELECT doc FROM marker WHERE account = $1 AND device = $2 AND id = $3`, sqlstore.Doc[iot.Marker], acct, deviceID, m.ID)
		if created = relay.KindOf(err) == relay.KindNotFound; created {
			before.CreatedAt, err = now, roomForMarker(ctx, tx, acct, deviceID)
		}
		if err != nil {
			return err
		}
		if out.CreatedAt.IsZero() {
			out.CreatedAt = before.CreatedAt
		}
		return tx.Run(ctx, noun, sqlstore.Upsert("marker", "account, device, id", "created, doc"), acct, deviceID, out.ID, out.CreatedAt, sqlstore.JSON(out))
	})
	return out, created && err == nil, err
}

// roomForMarker returns relay.KindInvalid if the device has as many markers as
// it may.
func roomForMarker(ctx context.Context, tx *sqlstore.Tx, acct account.ID, deviceID string) error {
	n, err := sqlstore.Value[int](ctx, tx, "markers of "+deviceID, "SELECT count(*) FROM marker WHERE account = $1 AND device = $2", acct, deviceID)
	if err == nil && n >= iot.MaxMarkers {
		return relay.Invalid("event_marker_id", fmt.Sprintf("The device has %d event markers, the most there may be.", iot.MaxMarkers))
	}
	return err
}

// Markers lists a device's event markers, newest first.
func (s *Store) Markers(ctx context.Context, acct account.ID, deviceID string) ([]iot.Marker, error) {
	return sqlstore.List(ctx, s.db, "markers of "+deviceID, `
SELECT doc FROM marker WHERE account = $1 AND device = $2 ORDER BY created DESC, id`, sqlstore.Doc[iot.Marker], acct, deviceID)
}
