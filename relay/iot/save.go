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
	write := Batch{Points: make([]Point, 0, b.points()), Radio: make([]RadioData, 0, len(b.all))}
	// The frames of write.Points[i] and write.Radio[i].
	points, radio := make([]*work, 0, cap(write.Points)), make([]*work, 0, len(b.all))
	for _, w := range b.all {
		if u := s.options.Radio.stored(w.radio); u != nil { // also of a frame that could not be decoded
			write.Radio = append(write.Radio, *u)
			radio = append(radio, w)
		}
		if !w.open() {
			continue
		}
		for _, p := range w.points {
			write.Points = append(write.Points, p)
			points = append(points, w)
		}
		w.out.Points = w.points
	}
	if len(write.Points)+len(write.Radio) == 0 {
		return s.keepLatest(ctx, b)
	}
	refused, err := s.readings.Write(ctx, write)
	if err != nil {
		return relay.Errorf(relay.KindUnavailable, "iot: store readings: %w", err)
	}
	for _, r := range refused {
		if r.Point >= 0 {
			points[r.Point].lost(write.Points[r.Point], r.Reason)
		} else {
			radio[r.Radio].out.Lost = append(radio[r.Radio].out.Lost, "uplink: "+r.Reason)
		}
	}
	return s.keepLatest(ctx, b)
}

func storedPoints(works []*work) []Point {
	n := 0
	for _, w := range works {
		n += len(w.out.Points)
	}
	all := make([]Point, 0, n)
	for _, w := range works {
		all = append(all, w.out.Points...)
	}
	return all
}

// points returns how many points the frames have.
func (b *batch) points() (n int) {
	for _, w := range b.all {
		n += len(w.points)
	}
	return n
}

// keepLatest caches the stored points as the latest values, and the time each
// device was last heard.
func (s *Service) keepLatest(ctx context.Context, b *batch) error {
	var g errgroup.Group
	if latest := storedPoints(b.all); len(latest) > 0 {
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
