package readings

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// InfluxDB leaves a field as it is that a later write does not have; so does
// this store.
func TestALaterUplinkAddsToAnEarlierOne(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	at := time.Unix(1_770_000_000, 0)
	of := func(u iot.RadioData) iot.RadioData { u.Account, u.DeviceID, u.Time = 7, "d", at; return u }
	for _, u := range []iot.RadioData{
		of(iot.RadioData{FCnt: new(int64(12)), FPort: new(int64(2)), RSSI: new(-110.0), Gateways: new(int64(1)), Battery: new(50.0)}),
		of(iot.RadioData{RSSI: new(-90.0), SNR: new(7.5), Gateways: new(int64(3)), Latitude: new(51.5), Longitude: new(-0.1), Margin: new(9.0)}),
		of(iot.RadioData{}),
	} {
		if refused, err := s.Write(t.Context(), iot.Batch{Uplinks: []iot.RadioData{u}}); err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
	}
	var got [9]float64
	row := s.write.QueryRowContext(t.Context(), "SELECT "+uplinkFields+" FROM uplink")
	if err := row.Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7], &got[8]); err != nil {
		t.Fatal(err)
	}
	if want := [9]float64{12, 2, -90, 7.5, 3, 50, 9, 51.5, -0.1}; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if n := count(t, s, "SELECT count(*) FROM uplink"); n != 1 {
		t.Errorf("%d uplinks", n)
	}
}
