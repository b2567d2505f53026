package iot

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// RawFrame is a logged frame of a device with frame logging.
type RawFrame struct {
	ID         string    `json:"id"` // journal record of the frame
	DeviceID   string    `json:"device_id"`
	ReceivedAt time.Time `json:"received_at"`
	Time       time.Time `json:"time,omitzero"` // result of SampleTime; zero in frames logged by earlier versions
	Sender     string    `json:"sender"`
	Kind       string    `json:"kind"` // a decoders.FrameKind
	FCnt       *int64    `json:"f_cnt,omitempty"`
	FPort      *int64    `json:"f_port,omitempty"`
	Payload    string    `json:"payload,omitempty"` // hex
	Encrypted  bool      `json:"encrypted,omitempty"`
	// Object and Samples are the values decoded by the sender. Samples have times.
	Object        json.RawMessage `json:"object,omitempty"`
	Samples       json.RawMessage `json:"samples,omitempty"`
	BesidePayload bool            `json:"beside_payload,omitempty"` // decoders.Frame.BesidePayload
	// Truncated reports whether the payload or the decoded values are omitted because they are too
	// long or cannot be encoded as JSON.
	Truncated bool     `json:"truncated,omitempty"`
	RSSI      *float64 `json:"rssi,omitempty"` // dBm, of the best gateway
	SNR       *float64 `json:"snr,omitempty"`  // dB, of the best gateway
	Gateways  int      `json:"gateways,omitempty"`
	Refused   string   `json:"refused,omitempty"` // reason why no readings were stored
	Note      string   `json:"note,omitempty"`
}

// MaxFrames is the largest number of raw frames that are stored for a device. FrameRetention is the
// time for which they are stored.
const (
	MaxFrames      = 100
	FrameRetention = 7 * 24 * time.Hour
)

// Limits of a raw frame, in bytes.
const (
	maxRawPayload = 1024
	maxRawValues  = 4096
	maxRawText    = 500
)

// Frames lists the stored raw frames of a device, newest first.
func (s *Service) Frames(ctx context.Context, acct relay.AccountID, deviceID string) ([]RawFrame, error) {
	if _, err := s.store.Device(ctx, acct, deviceID); err != nil {
		return nil, err
	}
	return s.store.Frames(ctx, acct, deviceID, s.options.Now().Add(-FrameRetention))
}

// logFrames saves the raw frames of devices with frame logging, with their outcome. Processing a record
// again replaces its frames.
func (s *Service) logFrames(ctx context.Context, b *frameBatch) error {
	framesByAccount := make(map[relay.AccountID][]RawFrame)
	for _, w := range b.frames {
		if w.device != nil && w.device.Device.FrameLogging && !w.outcome.Duplicate && !w.outcome.Deferred {
			framesByAccount[w.Account] = append(framesByAccount[w.Account], w.rawFrame())
		}
	}
	for acct, frames := range framesByAccount {
		if err := s.store.KeepFrames(ctx, acct, frames); err != nil {
			return fmt.Errorf("iot: raw frames: %w", err)
		}
	}
	return nil
}

// rawFrame returns the frame for the log. It omits values beyond the limits.
func (w *workItem) rawFrame() RawFrame {
	f := &w.Frame
	r := RawFrame{
		ID: w.RecordID, DeviceID: w.device.Device.ID, ReceivedAt: w.ReceivedAt.UTC(), Time: w.time,
		Sender: f.Sender, Kind: string(f.Kind), Encrypted: f.Encrypted, BesidePayload: f.BesidePayload, Gateways: len(f.Gateways),
		Refused: decoders.Clip(w.outcome.Refused, maxRawText), Note: decoders.Clip(strings.Join(w.outcome.Notes, "; "), maxRawText),
	}
	if f.HasFCnt {
		r.FCnt = new(f.FCnt)
	}
	if f.HasFPort {
		r.FPort = new(int64(f.FPort))
	}
	if best, ok := f.BestGateway(); ok {
		r.RSSI, r.SNR = best.RSSI, best.SNR
	}
	if len(f.Payload) <= maxRawPayload {
		r.Payload = hex.EncodeToString(f.Payload)
	} else {
		r.Truncated = true
	}
	if f.Object != nil {
		r.Object = r.marshal(f.Object)
	}
	if len(f.Samples) > 0 {
		samples := make([]sample, len(f.Samples))
		for i, s := range f.Samples {
			samples[i] = sample{Key: s.Key, Time: s.Time}
			if s.IsText {
				samples[i].Text = new(s.Text)
			} else {
				samples[i].Value = new(s.Value)
			}
		}
		r.Samples = r.marshal(samples)
	}
	return r
}

func (r *RawFrame) marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil || len(b) > maxRawValues {
		r.Truncated = true
		return nil
	}
	return b
}

type sample struct {
	Key   string    `json:"key"`
	Value *float64  `json:"value,omitempty"`
	Text  *string   `json:"text,omitempty"`
	Time  time.Time `json:"time,omitzero"`
}

// Arrival converts the raw frame to a received frame. ok is false if the raw frame is incomplete.
func (r RawFrame) Arrival(acct relay.AccountID) (a Arrival, ok bool) {
	if r.Truncated {
		return a, false
	}
	payload, err := hex.DecodeString(r.Payload)
	if err != nil {
		return a, false
	}
	f := decoders.Frame{
		Sender: r.Sender, Kind: decoders.FrameKind(r.Kind), Payload: payload, Encrypted: r.Encrypted, SampleTime: r.Time, BesidePayload: r.BesidePayload,
	}
	if r.FCnt != nil {
		f.FCnt, f.HasFCnt = *r.FCnt, true
	}
	if r.FPort != nil {
		f.FPort, f.HasFPort = int(*r.FPort), true
	}
	if len(r.Object) > 0 && json.Unmarshal(r.Object, &f.Object) != nil {
		return a, false
	}
	var samples []sample
	if len(r.Samples) > 0 && json.Unmarshal(r.Samples, &samples) != nil {
		return a, false
	}
	for _, s := range samples {
		reading := decoders.Reading{Key: s.Key, Time: s.Time}
		switch {
		case s.Text != nil:
			reading.Text, reading.IsText = *s.Text, true
		case s.Value != nil:
			reading.Value = *s.Value
		}
		f.Samples = append(f.Samples, reading)
	}
	return Arrival{RecordID: r.ID, Account: acct, ReceivedAt: r.ReceivedAt, Frame: f}, true
}

// KeepFrames saves raw frames of devices and deletes frames of these devices beyond MaxFrames and
// FrameRetention. It replaces frames with the same ID and ignores frames of deleted
// devices.
func (s *Store) KeepFrames(ctx context.Context, acct relay.AccountID, frames []RawFrame) error {
	if len(frames) == 0 {
		return nil
	}
	const lockDevices = `
		SELECT device.id
		FROM batch
		JOIN device ON device.account = batch.account AND device.id = batch.device
		ORDER BY device.id {for update}`
	const insert = `
		INSERT INTO raw_frame (account, device, id, received, doc)
		SELECT batch.account, batch.device, batch.id, batch.received, batch.doc
		FROM batch
		JOIN device ON device.account = batch.account AND device.id = batch.device
		WHERE true
		ON CONFLICT (account, device, id) DO UPDATE
		SET received = excluded.received,
		    doc = excluded.doc`
	// surplus selects the frames beyond MaxFrames and the frames beyond the retention. The
	// retention is relative to the newest frame of the device, so that a replay does not restore
	// deleted frames. Frames received at the same time as the oldest remaining frame also remain,
	// because Frames has a limit.
	const surplus = `
		WITH edge AS MATERIALIZED (
			SELECT batch.account, batch.device, {greatest}(
				(SELECT max(f.received)
				 FROM raw_frame AS f
				 WHERE f.account = batch.account AND f.device = batch.device) - $1,
				COALESCE((SELECT f.received
				          FROM raw_frame AS f
				          WHERE f.account = batch.account AND f.device = batch.device
				          ORDER BY f.received DESC
				          LIMIT 1 OFFSET $2), 0)) AS oldest
			FROM batch
		)
		SELECT f.account, f.device, f.id
		FROM edge
		JOIN raw_frame AS f ON f.account = edge.account AND f.device = edge.device AND f.received < edge.oldest`

	// Save the last version of each frame and lock each device once.
	byDevice := func(a, b RawFrame) int { return cmp.Compare(a.DeviceID, b.DeviceID) }
	frames = db.LastOfEach(frames, func(a, b RawFrame) int { return cmp.Or(byDevice(a, b), cmp.Compare(a.ID, b.ID)) })
	rows := db.BatchOf("account, device, id, received, doc", frames, func(f *RawFrame) []any {
		return []any{acct, f.DeviceID, f.ID, db.Nanos(f.ReceivedAt), db.JSON(f)}
	})
	devices := db.BatchOf("account, device", db.FirstOfEach(frames, byDevice), func(f *RawFrame) []any {
		return []any{acct, f.DeviceID}
	})
	return s.db.Write(ctx, "raw frames", func(ctx context.Context, tx *db.Tx) error {
		if _, err := db.Values[string](ctx, tx, "devices", lockDevices, devices); err != nil {
			return err
		}
		if err := tx.Run(ctx, "raw frames", insert, rows); err != nil {
			return err
		}
		_, err := deleteFrames(ctx, tx, surplus, int64(FrameRetention), MaxFrames-1, devices)
		return err
	})
}

type frameKey struct {
	account    relay.AccountID
	device, id string
}

func (k *frameKey) fields() []any { return []any{&k.account, &k.device, &k.id} }

// deleteFrames deletes the frames with the keys returned by a query, and counts them.
func deleteFrames(ctx context.Context, tx *db.Tx, query string, args ...any) (int, error) {
	keys, err := db.List(ctx, tx, "raw frames", query, (*frameKey).fields, args...)
	if err != nil {
		return 0, err
	}
	const statement = `
		DELETE FROM raw_frame
		WHERE (account, device, id) IN (SELECT account, device, id FROM batch)`
	return len(keys), tx.Run(ctx, "raw frames", statement, db.BatchOf("account, device, id", keys, (*frameKey).fields))
}

// Frames lists the stored raw frames of a device that were received at since or later, newest
// first.
func (s *Store) Frames(ctx context.Context, acct relay.AccountID, deviceID string, since time.Time) ([]RawFrame, error) {
	const query = `
		SELECT doc
		FROM raw_frame
		WHERE account = $1
		  AND device = $2
		  AND received >= $3
		ORDER BY received DESC, id DESC
		LIMIT $4`
	return db.List(ctx, s.db, "raw frames of "+deviceID, query, db.Doc[RawFrame], acct, deviceID, db.Nanos(since), MaxFrames)
}

// maxSwept is the largest number of frames that one transaction of Sweep deletes.
const maxSwept = 1000

// Sweep deletes the raw frames of all devices that are older than FrameRetention.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	const expired = `
		SELECT account, device, id
		FROM raw_frame
		WHERE received < $1
		ORDER BY received
		LIMIT $2 {skip locked}`
	return s.db.Repeat(ctx, "raw frames", maxSwept, func(ctx context.Context, tx *db.Tx) (int, error) {
		return deleteFrames(ctx, tx, expired, db.Nanos(now.Add(-FrameRetention)), maxSwept)
	})
}
