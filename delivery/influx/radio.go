package influx

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// radioFields are the fields of the measurement uplink that Radio reads, in the order
// of the columns.
func radioFields() []string {
	return []string{"rssi", "snr", "gateways", "battery", "latitude", "longitude"}
}

// Radio returns the newest radio data of each device.
func (s *Store) Radio(ctx context.Context, acct account.ID, deviceIDs []string, since time.Time) (map[string]iot.RadioData, error) {
	sv, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	search := s.radioFlux
	if s.language(sv) == InfluxQL {
		search = s.radioInfluxQL
	}
	var uplinks []iot.RadioData
	for some := range slices.Chunk(deviceIDs, maxNamedDevices) {
		found, err := search(ctx, acct, some, since)
		if err != nil {
			return nil, s.wrapError("query", err)
		}
		uplinks = append(uplinks, found...)
	}
	slices.SortStableFunc(uplinks, func(a, b iot.RadioData) int {
		return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), b.Time.Compare(a.Time))
	})
	out := make(map[string]iot.RadioData, len(deviceIDs))
	for _, u := range uplinks {
		newest := out[u.DeviceID]
		newest.Complete(u)
		out[u.DeviceID] = newest
	}
	return out, nil
}

func (s *Store) radioInfluxQL(ctx context.Context, acct account.ID, ids []string, since time.Time) ([]iot.RadioData, error) {
	db, rp := s.database()
	params := map[string]any{"account": acct.String()}
	tests := make([]string, len(ids))
	for i, id := range ids {
		name := "d" + strconv.Itoa(i)
		params[name] = clean(id)
		tests[i] = "device_id = $" + name
	}
	all, err := s.influxQL(ctx, statement{
		db: db, rp: rp, params: params,
		q: "SELECT " + strings.Join(radioFields(), ", ") + " FROM uplink WHERE account = $account" +
			timeCondition(withBounds(iot.Query{From: since})) + " AND (" + strings.Join(tests, " OR ") + ")" +
			" GROUP BY device_id ORDER BY time DESC LIMIT " + strconv.Itoa(iot.RadioUplinks),
	})
	if err != nil {
		return nil, err
	}
	var out []iot.RadioData
	for _, one := range all {
		for _, r := range one.rows {
			u, err := radioOf(acct, unclean(one.tags["device_id"]), r)
			if err != nil {
				return nil, err
			}
			out = append(out, u)
		}
	}
	return out, nil
}

func radioOf(acct account.ID, device string, r row) (iot.RadioData, error) {
	u := iot.RadioData{Account: acct, DeviceID: device}
	var err error
	if u.Time, err = r.time(); err != nil {
		return u, err
	}
	for i, name := range radioFields() {
		if i+1 >= len(r) {
			break
		}
		v, null, err := r.number(i + 1)
		if err != nil {
			return u, err
		}
		if !null {
			setRadio(&u, name, v)
		}
	}
	return u, nil
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

// radioFlux reads the last values of each field; those of one time are one uplink.
func (s *Store) radioFlux(ctx context.Context, acct account.ID, ids []string, since time.Time) ([]iot.RadioData, error) {
	tests, fields := make([]string, len(ids)), make([]string, len(radioFields()))
	for i, id := range ids {
		tests[i] = "r.device_id == " + quoteFlux(clean(id))
	}
	for i, name := range radioFields() {
		fields[i] = "r._field == " + quoteFlux(name)
	}
	q := withBounds(iot.Query{From: since})
	found, err := s.client.QueryAPI(s.opts.Org).Query(ctx, fmt.Sprintf("from(bucket: %s)\n  |> range(start: %s, stop: %s)\n"+
		"  |> filter(fn: (r) => r._measurement == \"uplink\" and r.account == %s and (%s))\n  |> filter(fn: (r) => %s)\n  |> tail(n: %d)\n",
		quoteFlux(s.opts.Bucket), fluxTime(q.From), fluxTime(q.To), quoteFlux(acct.String()), strings.Join(tests, " or "),
		strings.Join(fields, " or "), iot.RadioUplinks))
	if err != nil {
		return nil, err
	}
	type key struct {
		device string
		at     int64
	}
	at := make(map[key]int)
	var out []iot.RadioData
	for found.Next() {
		r := found.Record()
		tag, _ := r.ValueByKey("device_id").(string)
		v, ok := r.Value().(float64)
		if !ok {
			continue
		}
		k := key{unclean(tag), r.Time().UnixNano()}
		i, there := at[k]
		if !there {
			i = len(out)
			at[k] = i
			out = append(out, iot.RadioData{Account: acct, DeviceID: k.device, Time: r.Time().UTC()})
		}
		setRadio(&out[i], r.Field(), v)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("flux: %w", err)
	}
	return out, nil
}
