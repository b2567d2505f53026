package influx

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// radioFields returns the names of the fields of the measurement uplink that Radio reads, in
// the order of the columns.
func radioFields() []string {
	return []string{"rssi", "snr", "gateways", "battery", "latitude", "longitude"}
}

// Radio returns the newest radio data of each device.
func (s *Store) Radio(ctx context.Context, acct relay.AccountID, deviceIDs []string, since time.Time) (map[string]iot.RadioData, error) {
	search, err := forLanguage(ctx, s, s.radioFlux, s.radioInfluxQL)
	if err != nil {
		return nil, err
	}
	var uplinks []iot.RadioData
	for chunk := range slices.Chunk(deviceIDs, maxNamedDevices) {
		chunkUplinks, err := search(ctx, acct, chunk, since)
		if err != nil {
			return nil, s.wrapError("query", err)
		}
		uplinks = append(uplinks, chunkUplinks...)
	}
	slices.SortStableFunc(uplinks, func(a, b iot.RadioData) int {
		return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), b.Time.Compare(a.Time))
	})
	newestByDevice := make(map[string]iot.RadioData, len(deviceIDs))
	for _, u := range uplinks {
		newest := newestByDevice[u.DeviceID]
		newest.Complete(u)
		newestByDevice[u.DeviceID] = newest
	}
	return newestByDevice, nil
}

func (s *Store) radioInfluxQL(ctx context.Context, acct relay.AccountID, ids []string, since time.Time) ([]iot.RadioData, error) {
	params, devices := tagIn(acct, "device_id", ids)
	rows, err := s.influxQL(ctx, s.statement(params, "SELECT "+strings.Join(radioFields(), ", ")+" FROM uplink WHERE account = $account"+
		timeCondition(withBounds(iot.Query{From: since}))+" AND ("+devices+")"+
		" GROUP BY device_id ORDER BY time DESC LIMIT "+strconv.Itoa(iot.RadioFrames)))
	if err != nil {
		return nil, err
	}
	var frames []iot.RadioData
	err = eachRow(rows, func(s *series, t time.Time, r row) error {
		u := iot.RadioData{Account: acct, DeviceID: unclean(s.Tags["device_id"]), Time: t}
		for i, name := range radioFields()[:min(len(r)-1, len(radioFields()))] {
			v, null, err := r.number(i + 1)
			if err != nil {
				return err
			}
			if !null {
				setRadio(&u, name, v)
			}
		}
		frames = append(frames, u)
		return nil
	})
	return frames, err
}

func setRadio(u *iot.RadioData, field string, v float64) {
	switch field {
	case "rssi":
		u.RSSI = &v
	case "snr":
		u.SNR = &v
	case "gateways":
		u.Gateways = new(int64(v))
	case "battery":
		u.Battery = &v
	case "latitude":
		u.Latitude = &v
	case "longitude":
		u.Longitude = &v
	}
}

// radioFlux reads the last values of each field. The values with the same time are one uplink.
func (s *Store) radioFlux(ctx context.Context, acct relay.AccountID, ids []string, since time.Time) ([]iot.RadioData, error) {
	q := withBounds(iot.Query{From: since})
	script := s.fluxRange(q.From, q.To) + fmt.Sprintf("  |> filter(fn: (r) => r._measurement == \"uplink\" and r.account == %s and (%s))\n"+
		"  |> filter(fn: (r) => %s)\n  |> tail(n: %d)\n",
		quoteFlux(acct.String()), fluxIn("device_id", ids), fluxIn("_field", radioFields()), iot.RadioFrames)
	type key struct {
		device string
		ns     int64
	}
	indexes := make(map[key]int)
	var frames []iot.RadioData
	err := s.flux(ctx, script, func(r *query.FluxRecord) error {
		v, ok := r.Value().(float64)
		if !ok {
			return nil
		}
		k := key{unclean(fluxTag(r, "device_id")), r.Time().UnixNano()}
		i, exists := indexes[k]
		if !exists {
			i = len(frames)
			indexes[k] = i
			frames = append(frames, iot.RadioData{Account: acct, DeviceID: k.device, Time: r.Time().UTC()})
		}
		setRadio(&frames[i], r.Field(), v)
		return nil
	})
	return frames, err
}
