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
	latest := make(map[string]iot.RadioData, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, devicesAtOnce) {
		if err := s.radio(ctx, acct, chunk, since, latest); err != nil {
			return nil, s.failed("radio data", err)
		}
	}
	return latest, nil
}

func (s *Store) radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time, latest map[string]iot.RadioData) error {
	list, args := list([]any{since.UnixNano(), iot.RadioFrames, int64(acct)}, deviceIDs)
	return s.eachRow(ctx, func(rows *sql.Rows) error {
		u := iot.RadioData{Account: acct}
		var ns int64
		if err := rows.Scan(&u.DeviceID, &ns, &u.RSSI, &u.SNR, &u.Gateways, &u.Battery, &u.Latitude, &u.Longitude); err != nil {
			return err
		}
		u.Time = time.Unix(0, ns).UTC()
		newest := latest[u.DeviceID]
		newest.Complete(u)
		latest[u.DeviceID] = newest
		return nil
	}, fmt.Sprintf(selectRadio, list), args...)
}
