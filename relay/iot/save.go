package iot

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/relay"
)

// save writes to the reading store, and then updates the latest values. After an
// error of the store the whole batch is written again later.
func (s *Service) save(ctx context.Context, b *batch) error {
	// 1. Collect the points and the radio data, and the frame of each.
	n := 0
	for _, w := range b.frames {
		n += len(w.points)
	}
	write := Batch{Points: make([]Point, 0, n), Radio: make([]RadioData, 0, len(b.frames))}
	points, radio := make([]*work, 0, n), make([]*work, 0, len(b.frames))
	for _, w := range b.frames {
		if u := s.options.Radio.stored(w.radio); u != nil { // also of a frame that could not be decoded
			write.Radio, radio = append(write.Radio, *u), append(radio, w)
		}
		if !w.open() {
			continue
		}
		for _, p := range w.points {
			write.Points, points = append(write.Points, p), append(points, w)
		}
		w.outcome.Points = w.points
	}

	// 2. Write them, and remove the points that the store refuses.
	if len(write.Points)+len(write.Radio) > 0 {
		refused, err := s.readings.Write(ctx, write)
		if err != nil {
			return relay.Errorf(relay.KindUnavailable, "iot: store readings: %w", err)
		}
		for _, r := range refused {
			if r.Point >= 0 {
				points[r.Point].lost(write.Points[r.Point], r.Reason)
			} else {
				radio[r.Radio].outcome.Lost = append(radio[r.Radio].outcome.Lost, "uplink: "+r.Reason)
			}
		}
	}

	// 3. Cache the stored points as the latest values, and the time each device was last heard.
	latest := make([]Point, 0, n)
	for _, w := range b.frames {
		latest = append(latest, w.outcome.Points...)
	}
	var g errgroup.Group
	if len(latest) > 0 {
		g.Go(func() error {
			return relay.Recovered("latest values", func() error {
				return s.safeCache.change(ctx, func() error { return s.cache.SetLatest(ctx, latest) })
			})
		})
	}
	if heard := lastHeard(b); len(heard) > 0 {
		g.Go(func() error {
			return relay.Recovered("times of the last frames", func() error {
				return s.safeCache.change(ctx, func() error { return s.cache.SetHeard(ctx, heard) })
			})
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("iot: latest values: %w", err)
	}
	return nil
}
