package iot

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

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

// KeepFrames keeps raw frames of devices.
func (s *Store) KeepFrames(ctx context.Context, acct relay.AccountID, frames []RawFrame) error {
	if len(frames) == 0 {
		return nil
	}
	rows, devices := frameRows(acct, frames)
	return s.db.Write(ctx, "raw frames", func(ctx context.Context, tx *db.Tx) error {
		if _, err := db.Values[string](ctx, tx, "devices", `
SELECT device.id FROM batch JOIN device ON device.account = batch.account AND device.id = batch.device
ORDER BY device.id {for update}`, devices); err != nil {
			return err
		}
		if err := tx.Run(ctx, "raw frames", `
INSERT INTO raw_frame (account, device, id, received, doc)
SELECT batch.account, batch.device, batch.id, batch.received, batch.doc
FROM batch JOIN device ON device.account = batch.account AND device.id = batch.device
WHERE true
ON CONFLICT (account, device, id) DO UPDATE SET received = excluded.received, doc = excluded.doc`, rows); err != nil {
			return err
		}
		_, err := drop(ctx, tx, surplusFrames, int64(FrameRetention), MaxFrames-1, devices)
		return err
	})
}

// frameKey names a frame.
type frameKey struct {
	account    relay.AccountID
	device, id string
}

func (k *frameKey) fields() []any { return []any{&k.account, &k.device, &k.id} }

// drop deletes the frames that a statement answers, and counts them.
func drop(ctx context.Context, tx *db.Tx, which string, args ...any) (int, error) {
	keys, err := db.List(ctx, tx, "raw frames", which, (*frameKey).fields, args...)
	if err != nil {
		return 0, err
	}
	return len(keys), tx.Run(ctx, "raw frames", `
DELETE FROM raw_frame WHERE (account, device, id) IN (SELECT account, device, id FROM batch)`, db.BatchOf("account, device, id", keys, (*frameKey).fields))
}

// frameRows is the batches of frames and of their devices, each once: of a frame
// that is there twice the last.
func frameRows(acct relay.AccountID, frames []RawFrame) (rows, devices *db.Batch) {
	ofDevice := func(a, b RawFrame) int { return cmp.Compare(a.DeviceID, b.DeviceID) }
	last := db.LastOfEach(frames, func(a, b RawFrame) int { return cmp.Or(ofDevice(a, b), cmp.Compare(a.ID, b.ID)) })
	rows = db.BatchOf("account, device, id, received, doc", last, func(f *RawFrame) []any {
		return []any{acct, f.DeviceID, f.ID, db.Nanos(f.ReceivedAt), db.JSON(f)}
	})
	return rows, db.BatchOf("account, device", db.FirstOfEach(last, ofDevice), func(f *RawFrame) []any {
		return []any{acct, f.DeviceID}
	})
}

// Frames lists the raw frames kept of a device, newest first.
func (s *Store) Frames(ctx context.Context, acct relay.AccountID, deviceID string, since time.Time) ([]RawFrame, error) {
	return db.List(ctx, s.db, "raw frames of "+deviceID, `
SELECT doc FROM raw_frame
WHERE account = $1 AND device = $2 AND received >= $3
ORDER BY received DESC, id DESC LIMIT $4`, db.Doc[RawFrame],
		acct, deviceID, db.Nanos(since), MaxFrames)
}

// sweepAtOnce is how many frames one transaction of Sweep deletes at most.
const sweepAtOnce = 1000

// Sweep deletes the raw frames that are older than their retention allows, those
// of devices included that send no more.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.Repeat(ctx, "raw frames", sweepAtOnce, func(ctx context.Context, tx *db.Tx) (int, error) {
		return drop(ctx, tx, `
SELECT account, device, id FROM raw_frame WHERE received < $1
ORDER BY received LIMIT $2 {skip locked}`, db.Nanos(now.Add(-FrameRetention)), sweepAtOnce)
	})
}

// PutMarker saves an event marker of a device.
func (s *Store) PutMarker(ctx context.Context, acct relay.AccountID, deviceID string, m Marker, now time.Time) (out Marker, created bool, err error) {
	noun := "marker " + m.ID
	err = s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		out = m
		if err := lock(ctx, tx, acct, deviceID); err != nil {
			return err
		}
		before, err := db.One(ctx, tx, noun, `
SELECT doc FROM marker WHERE account = $1 AND device = $2 AND id = $3`, db.Doc[Marker], acct, deviceID, m.ID)
		if created = relay.KindOf(err) == relay.KindNotFound; created {
			before.CreatedAt, err = now, roomForMarker(ctx, tx, acct, deviceID)
		}
		if err != nil {
			return err
		}
		if out.CreatedAt.IsZero() {
			out.CreatedAt = before.CreatedAt
		}
		return tx.Run(ctx, noun, db.Upsert("marker", "account, device, id", "created, doc"), acct, deviceID, out.ID, out.CreatedAt, db.JSON(out))
	})
	return out, created && err == nil, err
}

// roomForMarker returns relay.KindInvalid if the device has as many markers as
// it may.
func roomForMarker(ctx context.Context, tx *db.Tx, acct relay.AccountID, deviceID string) error {
	n, err := db.Value[int](ctx, tx, "markers of "+deviceID, "SELECT count(*) FROM marker WHERE account = $1 AND device = $2", acct, deviceID)
	if err == nil && n >= MaxMarkers {
		return relay.Invalid("event_marker_id", fmt.Sprintf("The device has %d event markers, the most there may be.", MaxMarkers))
	}
	return err
}

// Markers lists a device's event markers, newest first.
func (s *Store) Markers(ctx context.Context, acct relay.AccountID, deviceID string) ([]Marker, error) {
	return db.List(ctx, s.db, "markers of "+deviceID, `
SELECT doc FROM marker WHERE account = $1 AND device = $2 ORDER BY created DESC, place DESC`, db.Doc[Marker], acct, deviceID)
}
