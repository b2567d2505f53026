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

// maxDeletedReadings is the largest number of readings that one transaction deletes. A writer may
// have to wait for such a transaction, which takes about 10 ms.
const maxDeletedReadings = 1000

// Forget deletes readings that are older than their sensors' retention. It searches
// concurrently with writers, and deletes in short transactions.
func (s *Store) Forget(ctx context.Context, acct relay.AccountID, expired []iot.ExpiredPoints) error {
	for len(expired) > 0 {
		n := 1 // the sensors of one device are searched together
		for n < len(expired) && expired[n].DeviceID == expired[0].DeviceID {
			n++
		}
		if err := s.forgetDevice(ctx, acct, expired[:n]); err != nil {
			return s.wrapError("forget", err)
		}
		expired = expired[n:]
	}
	return nil
}

// forgetDevice deletes the readings of a device, from the earliest on.
func (s *Store) forgetDevice(ctx context.Context, acct relay.AccountID, expired []iot.ExpiredPoints) error {
	for start, n := (readingKey{ns: math.MinInt64}), maxDeletedReadings; n == maxDeletedReadings; {
		var keys []readingKey
		text, args := expiredQuery(acct, expired, start)
		err := s.eachRow(ctx, func(rows *sql.Rows) error {
			var k readingKey
			err := rows.Scan(&k.device, &k.ns, &k.sensor)
			keys = append(keys, k)
			return err
		}, text, args...)
		if n = len(keys); err != nil || n == 0 {
			return err
		}
		if err := s.delete(ctx, keys); err != nil {
			return err
		}
		start = keys[n-1]
	}
	return nil
}

type readingKey struct{ device, ns, sensor int64 }

// expiredQuery returns a query that scans the primary key from start up to the latest time
// at which a reading of any of the sensors has expired.
func expiredQuery(acct relay.AccountID, expired []iot.ExpiredPoints, start readingKey) (string, []any) {
	lastExpired := slices.MaxFunc(expired, func(a, b iot.ExpiredPoints) int { return a.Before.Compare(b.Before) })
	text := `
SELECT reading.device, reading.at, reading.sensor
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
WHERE device.account = ? AND device.name = ? AND reading.at >= ? AND reading.at < ? AND (`
	args := []any{int64(acct), expired[0].DeviceID, start.ns, nanoseconds(lastExpired.Before, math.MinInt64)}
	text += strings.TrimSuffix(strings.Repeat("sensor.name = ? AND reading.at < ? OR ", len(expired)), " OR ")
	for _, e := range expired {
		args = append(args, e.SensorID, nanoseconds(e.Before, math.MinInt64))
	}
	return text + ") ORDER BY reading.at, reading.sensor LIMIT ?", append(args, maxDeletedReadings)
}

// delete deletes readings in one transaction. A reading that was overwritten after the query has
// the same time and is deleted too.
func (s *Store) delete(ctx context.Context, keys []readingKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for chunk := range slices.Chunk(keys, 100) {
		args := make([]any, 0, 3*len(chunk))
		for _, k := range chunk {
			args = append(args, k.device, k.ns, k.sensor)
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM reading WHERE (device, at, sensor) IN (VALUES (?, ?, ?)"+
			strings.Repeat(", (?, ?, ?)", len(chunk)-1)+")", args...)
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, tx)
}
