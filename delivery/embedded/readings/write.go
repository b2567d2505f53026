package readings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Write stores a batch in one transaction. The batch is on disk when Write returns nil. After
// an error nothing is stored.
func (s *Store) Write(ctx context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused, err := s.writeBatch(ctx, b)
	if err != nil {
		s.ids.clear() // the failed transaction may have assigned some of the ids
		return nil, s.wrapError("write", err)
	}
	s.ids.shrink()
	return refused, nil
}

func (s *Store) writeBatch(ctx context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	w := writer{ids: &s.ids, statements: statements{tx, make(map[string]*sql.Stmt)}}
	for i := range b.Points {
		if err := w.addPoint(ctx, &b.Points[i], i); err != nil {
			return nil, err
		}
	}
	for i := range b.Radio {
		if err := w.addUplink(ctx, &b.Radio[i], i); err != nil {
			return nil, err
		}
	}
	for row := range slices.Chunk(w.rows, rowColumns) { // fewer than rowsPerStatement
		if err := w.exec(ctx, insertReadings(1), row...); err != nil {
			return nil, err
		}
	}
	return w.refused, s.commit(ctx, tx)
}

// writer writes a batch within a transaction.
type writer struct {
	*ids
	statements
	rows    []any // of readings that are not inserted yet
	refused []iot.RefusedItem
}

func (w *writer) addPoint(ctx context.Context, p *iot.Point, i int) error {
	if reason := p.InvalidReason(); reason != "" {
		w.refused = append(w.refused, iot.RefusedItem{Point: i, Radio: -1, Reason: reason})
		return nil
	}
	device, err := w.lookupDevice(ctx, p.Account, p.DeviceID)
	if err != nil {
		return err
	}
	sensor, err := lookup(ctx, w, w.sensors, sensorName{device, p.SensorID}, findSensor, insertSensor, device, p.SensorID)
	if err != nil {
		return err
	}
	label, err := lookup(ctx, w, w.labels, labelName{p.Type, p.Identifier, p.Key}, findLabel, insertLabel, p.Type, p.Identifier, p.Key)
	if err != nil {
		return err
	}
	var value, text any = p.Value, nil
	if p.IsText {
		value, text = nil, p.Text
	}
	ns := p.Time.UnixNano()
	if newestNs, ok := w.newest[sensor]; !ok || ns-newestNs >= int64(newestSpan) {
		w.newest[sensor] = ns // the time in the table is the same or later
		if err := w.exec(ctx, raiseNewest, sensor, ns); err != nil {
			return err
		}
	}
	if w.rows = append(w.rows, device, ns, sensor, label, value, text); len(w.rows) == rowsPerStatement*rowColumns {
		err = w.exec(ctx, insertReadings(rowsPerStatement), w.rows...)
		w.rows = w.rows[:0]
	}
	return err
}

// newestSpan is the largest time between the row of the table newest and a sensor's newest
// reading: the table is written once a day, not with every reading.
const newestSpan = 24 * time.Hour

func (w *writer) lookupDevice(ctx context.Context, acct relay.AccountID, name string) (int64, error) {
	return lookup(ctx, w, w.devices, deviceName{acct, name}, findDevice, insertDevice, int64(acct), name)
}

func (w *writer) addUplink(ctx context.Context, u *iot.RadioData, i int) error {
	if reason := u.InvalidReason(); reason != "" {
		w.refused = append(w.refused, iot.RefusedItem{Point: -1, Radio: i, Reason: reason})
		return nil
	}
	fields := []any{
		null(u.FCnt), null(u.FPort), null(u.RSSI), null(u.SNR), null(u.Gateways), null(u.Battery),
		null(u.Margin), null(u.Latitude), null(u.Longitude),
	}
	if !slices.ContainsFunc(fields, func(f any) bool { return f != nil }) {
		return nil
	}
	device, err := w.lookupDevice(ctx, u.Account, u.DeviceID)
	if err != nil {
		return err
	}
	return w.exec(ctx, insertUplink, append([]any{device, u.Time.UnixNano(), u.Identifier}, fields...)...)
}

func null[T int64 | float64](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// maxIDs is the maximum number of cached names. A larger cache is cleared.
const maxIDs = 200_000

type (
	deviceName struct {
		account relay.AccountID
		name    string
	}
	sensorName struct {
		device int64
		name   string
	}
	labelName struct{ kind, identifier, key string }
)

// ids caches the ids of names, and the time of each sensor's newest reading. It must be cleared
// after a transaction was rolled back, because the ids of that transaction are invalid.
type ids struct {
	devices map[deviceName]int64
	sensors map[sensorName]int64
	labels  map[labelName]int64
	newest  map[int64]int64 // sensor → the time in the table newest, or an earlier one
}

func (i *ids) clear() {
	*i = ids{map[deviceName]int64{}, map[sensorName]int64{}, map[labelName]int64{}, map[int64]int64{}}
}

func (i *ids) shrink() {
	if len(i.devices)+len(i.sensors)+len(i.labels) > maxIDs {
		i.clear()
	}
}

// lookup returns the id of a name from the cache or the table, and inserts a new name.
func lookup[K comparable](ctx context.Context, w *writer, cache map[K]int64, name K, find, insert string, args ...any) (id int64, err error) {
	if id, ok := cache[name]; ok {
		return id, nil
	}
	for _, query := range []string{find, insert} {
		stmt, err := w.prepare(ctx, query)
		if err == nil {
			err = stmt.QueryRowContext(ctx, args...).Scan(&id)
		}
		if err == nil {
			cache[name] = id
			return id, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("id of a name: %w", err)
		}
	}
	return 0, sql.ErrNoRows // not reached: insert returns a row
}
