package iottest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Memory stores points in memory, for tests of code that uses a store. It has neither aggregates nor
// radio data.
type Memory struct {
	mu     sync.Mutex
	points []iot.Point
}

// Points returns all points in the order in which they were written.
func (m *Memory) Points() []iot.Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.points)
}

// Write stores all points.
func (m *Memory) Write(_ context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.points = append(m.points, b.Points...)
	return nil, nil
}

// Readings returns all points of a device, last written first.
func (m *Memory) Readings(_ context.Context, q iot.Query) ([]iot.Point, error) {
	points := slices.DeleteFunc(m.Points(), func(p iot.Point) bool { return p.DeviceID != q.DeviceID || p.Account != q.Account })
	slices.Reverse(points)
	return points, nil
}

// Latest returns the latest point of each of a device's sensors.
func (m *Memory) Latest(_ context.Context, acct relay.AccountID, deviceID string, _ []string) ([]iot.Point, error) {
	newest := make(map[string]iot.Point)
	for _, p := range m.Points() {
		if p.Account == acct && p.DeviceID == deviceID && !p.Time.Before(newest[p.SensorID].Time) {
			newest[p.SensorID] = p
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b iot.Point) int { return strings.Compare(a.SensorID, b.SensorID) }), nil
}

// LastStored returns the latest time of each device of an account.
func (m *Memory) LastStored(_ context.Context, acct relay.AccountID, _ []string) (map[string]time.Time, error) {
	times := make(map[string]time.Time)
	for _, p := range m.Points() {
		if p.Account == acct && p.Time.After(times[p.DeviceID]) {
			times[p.DeviceID] = p.Time
		}
	}
	return times, nil
}

// Aggregate returns nothing.
func (m *Memory) Aggregate(context.Context, iot.AggregateQuery) ([]iot.Bucket, error) {
	return nil, nil
}

// Forget deletes nothing.
func (m *Memory) Forget(context.Context, relay.AccountID, []iot.ExpiredPoints) error { return nil }

// Radio returns nothing.
func (m *Memory) Radio(context.Context, relay.AccountID, []string, time.Time) (map[string]iot.RadioData, error) {
	return nil, nil
}

// Ping always succeeds.
func (m *Memory) Ping(context.Context) error { return nil }
