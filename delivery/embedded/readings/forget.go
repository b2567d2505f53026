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

// forgetAtOnce is the number of readings that one transaction deletes. A writer may have to
// wait for such a transaction, which takes about 10 ms.
const forgetAtOnce = 1000

// Forget deletes readings that are older than their sensors' retention. It searches
// concurrently with writers, and deletes in short transactions.
func (s *Store) Forget(ctx context.Context, acct relay.AccountID, old []iot.ExpiredPoints) error {
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
func (s *Store) forgetDevice(ctx context.Context, acct relay.AccountID, old []iot.ExpiredPoints) error {
	for start, n := (readingKey{ns: math.MinInt64}), forgetAtOnce; n == forgetAtOnce; {
		var found []readingKey
		text, args := expiredQuery(acct, old, start)
		err := s.eachRow(ctx, func(rows *sql.Rows) error {
			var k readingKey
			err := rows.Scan(&k.device, &k.ns, &k.sensor)
			found = append(found, k)
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

type readingKey struct{ device, ns, sensor int64 }

// expiredQuery returns a query that scans the primary key from start up to the latest time
// at which a reading of any of the sensors has expired.
func expiredQuery(acct relay.AccountID, old []iot.ExpiredPoints, start readingKey) (string, []any) {
	lastExpired := slices.MaxFunc(old, func(a, b iot.ExpiredPoints) int { return a.Before.Compare(b.Before) })
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

// delete deletes readings in one transaction. A reading that was overwritten after the query has
// the same time and is deleted too.
func (s *Store) delete(ctx context.Context, found []readingKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for chunk := range slices.Chunk(found, 100) {
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
