package devices

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

const lockDevices = `
SELECT device.id FROM batch JOIN device ON device.account = batch.account AND device.id = batch.device
ORDER BY device.id {for update}`

const keepFrames = `
INSERT INTO raw_frame (account, device, id, received, doc)
SELECT batch.account, batch.device, batch.id, batch.received, batch.doc
FROM batch JOIN device ON device.account = batch.account AND device.id = batch.device
WHERE true
ON CONFLICT (account, device, id) DO UPDATE SET received = excluded.received, doc = excluded.doc`

// surplusFrames answers the frames of the devices that are too many, and those
// that are older than the retention allows. That counts from the newest frame of
// the device, so that a replay does not bring back a frame that was deleted. Of
// frames of the same nanosecond more than MaxFrames may stay; Frames lists no
// more.
const surplusFrames = `
WITH edge AS MATERIALIZED (
  SELECT batch.account, batch.device, {greatest}(
    (SELECT max(f.received) FROM raw_frame AS f WHERE f.account = batch.account AND f.device = batch.device) - $1,
    COALESCE((SELECT f.received FROM raw_frame AS f WHERE f.account = batch.account AND f.device = batch.device
              ORDER BY f.received DESC LIMIT 1 OFFSET $2), 0)) AS oldest
  FROM batch
)
SELECT f.account, f.device, f.id
FROM edge JOIN raw_frame AS f ON f.account = edge.account AND f.device = edge.device AND f.received < edge.oldest`

const oldFrames = `
SELECT account, device, id FROM raw_frame WHERE received < $1
ORDER BY received LIMIT $2 {skip locked}`

const dropFrames = `
DELETE FROM raw_frame WHERE (account, device, id) IN (SELECT account, device, id FROM batch)`

// KeepFrames keeps raw frames of devices.
func (s *Store) KeepFrames(ctx context.Context, acct account.ID, frames []iot.RawFrame) error {
	if len(frames) == 0 {
		return nil
	}
	rows, devices, err := frameRows(acct, frames)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, "raw frames", func(ctx context.Context, tx *sqlstore.Tx) error {
		if _, err := sqlstore.Values[string](ctx, tx, "devices", lockDevices, devices); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "raw frames", keepFrames, rows); err != nil {
			return err
		}
		_, err := drop(ctx, tx, surplusFrames, int64(iot.FrameRetention), int64(iot.MaxFrames-1), devices)
		return err
	})
}

// drop deletes the frames that a statement answers, and counts them.
func drop(ctx context.Context, tx *sqlstore.Tx, which string, args ...any) (int, error) {
	keys := sqlstore.NewBatch("account bigint, device text, id text")
	_, err := sqlstore.List(ctx, tx, "raw frames", which, func(row *sql.Rows, _ *struct{}) error {
		var acct int64
		var device, id string
		err := row.Scan(&acct, &device, &id)
		keys.Add(acct, device, id)
		return err
	}, args...)
	if err != nil || keys.Len() == 0 {
		return 0, err
	}
	_, err = tx.Exec(ctx, "raw frames", dropFrames, keys)
	return keys.Len(), err
}

// frameRows is the batches of frames and of their devices, each once: of a frame
// that is there twice the last.
func frameRows(acct account.ID, frames []iot.RawFrame) (rows, devices *sqlstore.Batch, err error) {
	rows, devices = sqlstore.NewBatch("account bigint, device text, id text, received bigint, doc text"), sqlstore.NewBatch("account bigint, device text")
	seen, known := make(map[[2]string]bool, len(frames)), make(map[string]bool)
	for _, f := range slices.Backward(frames) {
		if seen[[2]string{f.DeviceID, f.ID}] {
			continue
		}
		doc, err := sqlstore.Encode(f)
		if err != nil {
			return nil, nil, fmt.Errorf("raw frame %s: encode: %w", f.ID, err)
		}
		seen[[2]string{f.DeviceID, f.ID}] = true
		rows.Add(int64(acct), f.DeviceID, f.ID, nanos(f.ReceivedAt), doc)
		if !known[f.DeviceID] {
			known[f.DeviceID] = true
			devices.Add(int64(acct), f.DeviceID)
		}
	}
	return rows, devices, nil
}

const listFrames = `
SELECT doc FROM raw_frame
WHERE account = $1 AND device = $2 AND received >= $3
ORDER BY received DESC, id DESC LIMIT $4`

// Frames lists the raw frames kept of a device, newest first.
func (s *Store) Frames(ctx context.Context, acct account.ID, deviceID string, since time.Time) ([]iot.RawFrame, error) {
	return sqlstore.List(ctx, s.db, "raw frames of "+deviceID, listFrames, sqlstore.ScanDoc[iot.RawFrame],
		int64(acct), deviceID, nanos(since), int64(iot.MaxFrames))
}

// sweepAtOnce is how many frames one transaction of Sweep deletes at most.
const sweepAtOnce = 1000

// Sweep deletes the raw frames that are older than their retention allows, those
// of devices included that send no more.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for n := sweepAtOnce; n == sweepAtOnce; {
		err := s.db.Write(ctx, "raw frames", func(ctx context.Context, tx *sqlstore.Tx) (err error) {
			n, err = drop(ctx, tx, oldFrames, nanos(now.Add(-iot.FrameRetention)), int64(sweepAtOnce))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
