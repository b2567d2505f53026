package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Marker is an event in a device's life that a user recorded.
type Marker struct {
	ID        string    `json:"id"` // the caller's
	Comment   string    `json:"comment"`
	CreatedAt time.Time `json:"created_at"` // when it happened
}

// MaxMarkers is how many event markers a device may have.
const MaxMarkers = 10_000

// AddMarker saves an event marker; one of the same id gets the new comment, and
// the new time if one is given. created says that it is a new one, which gets
// the time now if none is given.
//
// It returns Invalid if a field is missing or the device has MaxMarkers, and
// NotFound if the account has no such device.
func (s *Service) AddMarker(ctx context.Context, acct relay.AccountID, deviceID string, m Marker) (out Marker, created bool, err error) {
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
