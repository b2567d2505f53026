package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Version changes with the records and rules of an account.
func (s *Service) Version(ctx context.Context, acct relay.AccountID) (Version, error) {
	versions, err := s.store.Versions(ctx, []relay.AccountID{acct})
	return versions[acct], err
}

// DevicesByID returns those of the devices that are there, without the time that each
// was heard.
func (s *Service) DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) (map[string]Device, error) {
	devices, err := s.store.DevicesByID(ctx, acct, ids)
	return db.By(devices, func(d Device) string { return d.ID }), err
}

// HeardLast returns when devices were heard last, by id, zero for never. With sure,
// the cache is not trusted: it may have missed a frame. It returns
// relay.KindUnavailable then if the reading store does not answer.
func (s *Service) HeardLast(ctx context.Context, acct relay.AccountID, ids []string, sure bool) (map[string]time.Time, error) {
	heard, err := s.heardLast(ctx, acct, ids)
	if err != nil || !sure {
		return heard, err
	}
	now := s.options.Now()
	stored, err := s.readings.LastStored(ctx, acct, ids)
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: last readings: %w", err)
	}
	for id, storedAt := range stored {
		if storedAt.After(now) { // samples may be ahead of the clock
			storedAt = now
		}
		if storedAt.After(heard[id]) {
			heard[id] = storedAt
		}
	}
	return heard, nil
}

func (s *Service) lastSeen(ctx context.Context, acct relay.AccountID, devices []Device) error {
	ids := make([]string, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	heard, err := s.heardLast(ctx, acct, ids)
	if err != nil {
		return err
	}
	for i := range devices {
		devices[i].LastSeen = heard[devices[i].ID]
	}
	return nil
}

func (s *Service) oneSeen(ctx context.Context, acct relay.AccountID, d Device, err error) (Device, error) {
	if err != nil {
		return d, err
	}
	devices := []Device{d}
	err = s.lastSeen(ctx, acct, devices)
	return devices[0], err
}

// heardLast returns when devices were heard last, by device id: from the cache,
// and for the devices missing there from the reading store. If the reading store
// is down, cached times of any age count: lists of devices work without readings.
func (s *Service) heardLast(ctx context.Context, acct relay.AccountID, ids []string) (map[string]time.Time, error) {
	asOf := s.options.Now()
	var known map[string]Heard
	if _, err := s.safeCache.call(ctx, func() (err error) {
		known, err = s.cache.Heard(ctx, acct, ids)
		return err
	}); err != nil {
		return nil, err
	}
	heardAt := make(map[string]time.Time, len(ids))
	var missing []string
	for _, id := range ids {
		heardAt[id] = known[id].At
		if !s.safeCache.fresh(known[id].Filled, heardFresh) {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return heardAt, nil
	}
	stored, err := s.readings.LastStored(ctx, acct, missing)
	if err != nil {
		s.safeCache.log.WarnContext(ctx, "reading store unavailable; devices may show an older last contact", "account", acct, "error", err)
		return heardAt, ctx.Err()
	}
	fill := make(map[string]time.Time, len(missing))
	for _, id := range missing {
		fill[id] = stored[id]
		if fill[id].After(asOf) { // samples may be ahead of the clock
			fill[id] = asOf
		}
		if fill[id].After(heardAt[id]) {
			heardAt[id] = fill[id]
		}
	}
	_, err = s.safeCache.call(ctx, func() error { return s.cache.FillHeard(ctx, acct, fill, asOf) })
	return heardAt, err
}
