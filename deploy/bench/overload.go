package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How overload is measured.
const (
	overloadFactor = 4    // times the peak that is offered
	overloadConns  = 2000 // over so many connections
	floodConns     = 500  // of the account that floods, as fast as it is answered
	quietRate      = 200  // frames a second of the quiet account
	quietConns     = 8
	quietDevices   = 100
	healthyP99     = 50 * time.Millisecond
	normalWindow   = time.Second // normal: nothing of a window is refused, and its p99 is healthy
	maxNormal      = time.Minute
)

// site is a gateway with an account that loads it and a quiet one, and the table of what
// is found.
type site struct {
	*gateway
	*bench
	table
	loud, quiet *sender
}

// site starts a gateway for a part of the measurement.
func (b *bench) site(ctx context.Context, heads ...any) (*site, error) {
	g, err := b.gateway(ctx, options{env: []string{"PENSTOCK_INBOUND_ANSWER_WAIT=1m"}})
	if err != nil {
		return nil, err
	}
	s := &site{gateway: g, bench: b, loud: b.sender(&g.target), table: b.table(heads...)}
	s.quiet = s.loud.with(quietConns, quietRate)
	s.quiet.token, s.quiet.devices, s.quiet.firstDevice = quietToken, quietDevices, 1<<20
	return s, nil
}

// overload measures what a gateway does with more than it can take.
func overload(ctx context.Context, b *bench) error {
	s, err := b.site(ctx, "overload", "found", "aim")
	if err != nil {
		return err
	}
	peak, err := s.findPeak(ctx)
	if err != nil {
		return err
	}
	for _, stage := range []func() error{
		func() error { return s.floodAll(ctx, peak) },
		func() error { return s.floodOfOne(ctx) },
	} {
		if err := errors.Join(stage(), s.settle(ctx)); err != nil {
			return err
		}
	}
	s.row("the most memory of all stages, MiB", peakMemory(s.pid())>>20, "")
	s.Flush()
	if err := b.reconcileFrames(ctx, "frames under overload", s.gateway); err != nil {
		return err
	}
	return b.attacks(ctx)
}

// findPeak measures the most that is accepted in a second.
func (s *site) findPeak(ctx context.Context) (peak float64, err error) {
	for _, c := range []*sender{s.loud, s.quiet} { // their devices are imported
		if _, err := c.run(ctx, s.seconds/2); err != nil {
			return 0, err
		}
	}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	for range s.rounds {
		o, err := s.loud.run(ctx, s.seconds)
		if err := errors.Join(err, s.settle(ctx)); err != nil {
			return 0, err
		}
		peak = max(peak, o.acceptedRate())
	}
	s.row(fmt.Sprintf("peak over %d connections, frames accepted a second", s.conns), rounded(peak), "")
	return peak, nil
}

// floodAll offers several times the peak, and then waits for the gateway to be as it
// was before.
func (s *site) floodAll(ctx context.Context, peak float64) error {
	watched, stop := context.WithCancel(ctx)
	var memory int64
	var wg sync.WaitGroup
	wg.Go(func() { memory = maxResident(watched, s.pid()) })
	o, err := s.loud.with(overloadConns, overloadFactor*peak).run(ctx, 2*s.seconds)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	perSecond := func(n int64) string { return rounded(float64(n) / o.accepted.Seconds()) }
	s.row(fmt.Sprintf("%d times that due over %d connections, sent a second", overloadFactor, overloadConns), perSecond(o.count+o.refused+o.broken), "")
	s.row("of them accepted, refused with 503, without an answer a second", fmt.Sprintf("%s, %s, %s", perSecond(o.count), perSecond(o.refused), perSecond(o.broken)), "")
	s.row("accepted / peak", o.acceptedRate()/peak, "≥ 0.90")
	s.row("p99 of what was accepted", o.quantile(0.99), "≤ 500ms")
	s.row("memory during the overload, MiB", memory>>20, fmt.Sprintf("≤ %d", maxLoadedMemory))
	ended := time.Now()
	for {
		o, err := s.quiet.run(ctx, normalWindow)
		if err != nil {
			return err
		}
		if o.refused == 0 && o.quantile(0.99) <= healthyP99 {
			break
		}
		if time.Since(ended) > maxNormal {
			return fmt.Errorf("not normal within %v of the overload: p99 %v", maxNormal, o.quantile(0.99))
		}
	}
	s.row(fmt.Sprintf("afterwards, until nothing is refused and p99 ≤ %v", healthyP99), time.Since(ended), "≤ 5s")
	err = s.settle(ctx)
	s.row("afterwards, until everything is stored", time.Since(ended), "")
	return err
}

// floodOfOne has one account flood beside the quiet one.
func (s *site) floodOfOne(ctx context.Context) error {
	var wg sync.WaitGroup
	var flood outcome
	var err error
	wg.Go(func() { flood, err = s.loud.with(floodConns, 0).run(ctx, s.seconds) })
	o, quietErr := s.quiet.run(ctx, s.seconds)
	wg.Wait()
	s.row(fmt.Sprintf("p99 of the quiet account beside one that floods over %d connections", floodConns), o.quantile(0.99), "≤ 100ms")
	s.row("of the quiet account refused", o.refused, 0)
	s.row("of the other accepted a second, refused", fmt.Sprintf("%.0f, %d", flood.acceptedRate(), flood.refused), "")
	return errors.Join(err, quietErr)
}
