package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
)

// Version changes with the records and rules of an account.
func (s *Service) Version(ctx context.Context, acct relay.AccountID) (Version, error) {
	all, err := s.store.Versions(ctx, []relay.AccountID{acct})
	return all[acct], err
}

// DevicesByID returns those of the devices that are there, without the time that each
// was heard.
func (s *Service) DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) (map[string]Device, error) {
	all, err := s.store.DevicesByID(ctx, acct, ids)
	out := make(map[string]Device, len(all))
	for _, d := range all {
		out[d.ID] = d
	}
	return out, err
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
	for id, at := range stored {
		if at.After(now) { // samples may be ahead of the clock
			at = now
		}
		if at.After(heard[id]) {
			heard[id] = at
		}
	}
	return heard, nil
}

// Points returns readings of a device, newest first. From and to are inclusive and may
// be zero; limit is at most 1000.
func (s *Service) Points(ctx context.Context, acct relay.AccountID, deviceID string, from, to time.Time, limit int) ([]Point, error) {
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	if err != nil || len(sensors) == 0 {
		return nil, err
	}
	points, err := s.readings.Readings(ctx, Query{
		Account: acct, DeviceID: deviceID, Types: typesOf(sensors), From: from, To: to, Limit: limit,
	})
	if err != nil {
		return nil, relay.Errorf(relay.KindUnavailable, "iot: readings: %w", err)
	}
	return current(points, sensors), nil
}

// SensorTypes returns the sensor types by id.
func (s *Service) SensorTypes(ctx context.Context) (map[string]SensorType, error) {
	types, err := s.store.SensorTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("iot: sensor types: %w", err)
	}
	return types, nil
}
