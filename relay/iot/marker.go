package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Marker is a user's record of an event at a device.
type Marker struct {
	ID        string    `json:"id"` // chosen by the caller
	Comment   string    `json:"comment"`
	CreatedAt time.Time `json:"created_at"` // time of the event
}

// MaxMarkers is the largest number of event markers that a device may have.
const MaxMarkers = 10_000

// AddMarker saves an event marker and reports whether it is new. A stored marker with the same ID gets
// the new comment, and the new time unless CreatedAt is zero. A new marker without a time gets the
// current time.
//
// It returns relay.KindInvalid if a field is missing or invalid or the device has MaxMarkers, and
// relay.KindNotFound if the account has no such device.
func (s *Service) AddMarker(ctx context.Context, acct relay.AccountID, deviceID string, m Marker) (saved Marker, created bool, err error) {
	p := relay.Problems{}
	p.Require("event_marker_id", m.ID)
	p.Require("comment", m.Comment)
	p.Limit("event_marker_id", m.ID, maxKey)
	p.Limit("comment", m.Comment, maxComment)
	if !isOneLine(m.ID) {
		p.Add("event_marker_id", "The event marker id must be one line of text.")
	}
	if y := m.CreatedAt.Year(); y < 1 || y > 9999 {
		p.Add("date_published", "The date published must lie in the years 1 to 9999.")
	}
	if err := p.Err(); err != nil {
		return m, false, err
	}
	m.CreatedAt = m.CreatedAt.Truncate(time.Second)
	return s.store.PutMarker(ctx, acct, deviceID, m, s.options.Now().UTC().Truncate(time.Second))
}

// Markers lists a device's event markers, newest first.
func (s *Service) Markers(ctx context.Context, acct relay.AccountID, deviceID string) ([]Marker, error) {
	if _, err := s.store.Device(ctx, acct, deviceID); err != nil {
		return nil, err
	}
	return s.store.Markers(ctx, acct, deviceID)
}

// PutMarker saves an event marker of a device like AddMarker and returns the saved marker. It returns
// relay.KindNotFound if there is no such device, and relay.KindInvalid if the device has
// MaxMarkers.
func (s *Store) PutMarker(ctx context.Context, acct relay.AccountID, deviceID string, m Marker, now time.Time) (saved Marker, created bool, err error) {
	const query = "SELECT doc FROM marker WHERE account = $1 AND device = $2 AND id = $3"
	const count = "SELECT count(*) FROM marker WHERE account = $1 AND device = $2"
	const put = `
		INSERT INTO marker (account, device, id, created, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, device, id) DO UPDATE
		SET created = excluded.created,
		    doc = excluded.doc`
	label := "marker " + m.ID
	err = s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		saved = m
		if err := lockDevice(ctx, tx, acct, deviceID); err != nil {
			return err
		}
		stored, err := db.One(ctx, tx, label, query, db.Doc[Marker], acct, deviceID, m.ID)
		if created = relay.KindOf(err) == relay.KindNotFound; created {
			var n int
			stored.CreatedAt = now
			n, err = db.Value[int](ctx, tx, "markers of "+deviceID, count, acct, deviceID)
			if err == nil && n >= MaxMarkers {
				err = relay.Invalid("event_marker_id", fmt.Sprintf("The device has %d event markers, the largest number allowed.", MaxMarkers))
			}
		}
		if err != nil {
			return err
		}
		if saved.CreatedAt.IsZero() {
			saved.CreatedAt = stored.CreatedAt
		}
		return tx.Run(ctx, label, put, acct, deviceID, saved.ID, saved.CreatedAt, db.JSON(saved))
	})
	return saved, created && err == nil, err
}

// Markers lists a device's event markers, newest first.
func (s *Store) Markers(ctx context.Context, acct relay.AccountID, deviceID string) ([]Marker, error) {
	const query = `
		SELECT doc
		FROM marker
		WHERE account = $1
		  AND device = $2
		ORDER BY created DESC, place DESC`
	return db.List(ctx, s.db, "markers of "+deviceID, query, db.Doc[Marker], acct, deviceID)
}
