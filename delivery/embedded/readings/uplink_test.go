package readings

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// A later write without a field leaves the field unchanged, as in InfluxDB.
func TestALaterWriteOfAnUplinkKeepsOtherFields(t *testing.T) {
	s := relaytest.Must(Open(t.TempDir(), ""))(t)
	defer func() { _ = s.Close() }()
	now := time.Unix(1_770_000_000, 0)
	uplink := func(u iot.RadioData) iot.RadioData { u.Account, u.DeviceID, u.Time = 7, "d", now; return u }
	for _, u := range []iot.RadioData{
		uplink(iot.RadioData{FCnt: new(int64(12)), FPort: new(int64(2)), RSSI: new(-110.0), Gateways: new(int64(1)), Battery: new(50.0)}),
		uplink(iot.RadioData{RSSI: new(-90.0), SNR: new(7.5), Gateways: new(int64(3)), Latitude: new(51.5), Longitude: new(-0.1), Margin: new(9.0)}),
		uplink(iot.RadioData{}),
	} {
		relaytest.Equal(t, "the refused uplinks", relaytest.Must(s.Write(t.Context(), iot.Readings{Radio: []iot.RadioData{u}}))(t), nil)
	}
	var got [9]float64
	row := s.write.QueryRowContext(t.Context(), "SELECT f_cnt, f_port, rssi, snr, gateways, battery, margin, latitude, longitude FROM uplink")
	relaytest.NoError(t, row.Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7], &got[8]))
	relaytest.Equal(t, "the fields", got, [9]float64{12, 2, -90, 7.5, 3, 50, 9, 51.5, -0.1})
	relaytest.Equal(t, "the number of uplinks", count(t, s, "SELECT count(*) FROM uplink"), 1)
}
