package readings

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// selectRadio is completed with the names of devices. It reads the last entries of each
// device in the primary key.
const selectRadio = `
SELECT device.name, u.at, u.rssi, u.snr, u.gateways, u.battery, u.latitude, u.longitude
FROM device JOIN uplink u ON u.device = device.id AND u.at IN (
	SELECT at FROM uplink WHERE uplink.device = device.id AND at >= ? ORDER BY at DESC LIMIT ?)
WHERE device.account = ? AND device.name IN %s
ORDER BY device.name, u.at DESC`

// Radio returns the newest radio data of each device.
func (s *Store) Radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time) (map[string]iot.RadioData, error) {
	out := make(map[string]iot.RadioData, len(deviceIDs))
	for some := range slices.Chunk(deviceIDs, devicesAtOnce) {
		if err := s.radio(ctx, acct, some, since, out); err != nil {
			return nil, s.failed("radio data", err)
		}
	}
	return out, nil
}

func (s *Store) radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time, out map[string]iot.RadioData) error {
	list, args := in([]any{since.UnixNano(), iot.RadioFrames, int64(acct)}, deviceIDs)
	return s.each(ctx, func(rows *sql.Rows) error {
		u := iot.RadioData{Account: acct}
		var at int64
		if err := rows.Scan(&u.DeviceID, &at, &u.RSSI, &u.SNR, &u.Gateways, &u.Battery, &u.Latitude, &u.Longitude); err != nil {
			return err
		}
		u.Time = time.Unix(0, at).UTC()
		newest := out[u.DeviceID]
		newest.Complete(u)
		out[u.DeviceID] = newest
		return nil
	}, fmt.Sprintf(selectRadio, list), args...)
}
