package readings

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// forgetAtOnce is the number of readings that one transaction deletes: it takes about 10 ms,
// for which a writer may have to wait.
const forgetAtOnce = 1000

// Forget deletes readings that are older than their sensors' retention. It searches
// concurrently with writers, and deletes in short transactions.
func (s *Store) Forget(ctx context.Context, acct relay.AccountID, old []iot.Expired) error {
	for len(old) > 0 {
		n := 1 // the sensors of one device are searched together
		for n < len(old) && old[n].DeviceID == old[0].DeviceID {
			n++
		}
		if err := s.forgetDevice(ctx, acct, old[:n]); err != nil {
			return s.failed("forget", err)
		}
		old = old[n:]
	}
	return nil
}

// forgetDevice deletes the readings of a device, from the earliest on.
func (s *Store) forgetDevice(ctx context.Context, acct relay.AccountID, old []iot.Expired) error {
	for start, n := (place{ns: math.MinInt64}), forgetAtOnce; n == forgetAtOnce; {
		var found []place
		text, args := outlivedQuery(acct, old, start)
		err := s.eachRow(ctx, func(rows *sql.Rows) error {
			var p place
			err := rows.Scan(&p.device, &p.ns, &p.sensor)
			found = append(found, p)
			return err
		}, text, args...)
		if n = len(found); err != nil || n == 0 {
			return err
		}
		if err := s.delete(ctx, found); err != nil {
			return err
		}
		start = found[n-1]
	}
	return nil
}

// place is the key of a reading.
type place struct{ device, ns, sensor int64 }

// outlivedQuery scans the primary key from a place up to the latest time before which
// any of the sensors loses readings.
func outlivedQuery(acct relay.AccountID, old []iot.Expired, start place) (string, []any) {
	lastExpired := slices.MaxFunc(old, func(a, b iot.Expired) int { return a.Before.Compare(b.Before) })
	text := `
SELECT reading.device, reading.at, reading.sensor
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
WHERE device.account = ? AND device.name = ? AND reading.at >= ? AND reading.at < ? AND (`
	args := []any{int64(acct), old[0].DeviceID, start.ns, nanoseconds(lastExpired.Before, math.MinInt64)}
	text += strings.TrimSuffix(strings.Repeat("sensor.name = ? AND reading.at < ? OR ", len(old)), " OR ")
	for _, e := range old {
		args = append(args, e.SensorID, nanoseconds(e.Before, math.MinInt64))
	}
	return text + ") ORDER BY reading.at, reading.sensor LIMIT ?", append(args, forgetAtOnce)
}

// delete deletes readings in one transaction, also those that were overwritten
// meanwhile: they have the same time.
func (s *Store) delete(ctx context.Context, found []place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for chunk := range slices.Chunk(found, 100) {
		args := make([]any, 0, 3*len(chunk))
		for _, p := range chunk {
			args = append(args, p.device, p.ns, p.sensor)
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM reading WHERE (device, at, sensor) IN (VALUES (?, ?, ?)"+
			strings.Repeat(", (?, ?, ?)", len(chunk)-1)+")", args...)
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, tx)
}
