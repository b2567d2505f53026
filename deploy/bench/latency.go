package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How latency is measured: at this part of the peak, with devices that look for their
// own readings, and messages of carriers at a tenth of what is relayed at most.
const (
	peakPart    = 10
	probers     = 8
	probeEvery  = 10 * time.Millisecond
	fsyncs      = 500
	fsyncBytes  = 4 << 10
	calmRate    = 700 // messages a second
	probeDevice = 1 << 22

	aimFsyncPlus = 2 * time.Millisecond
	aimQueryable = 1500 * time.Millisecond
	aimCalledP50 = 10 * time.Millisecond
	aimCalledP99 = 50 * time.Millisecond
)

// latencies are the results, one of each a round.
type latencies struct {
	rate                 float64 // frames a second
	fsync, accepted      []time.Duration
	acceptedP50          []time.Duration
	queryable            []time.Duration // of all rounds, sorted
	calledP50, calledP99 []time.Duration
}

// latency measures how long things take while a gateway has a tenth of the work that
// it could do.
func latency(ctx context.Context, p *peers, s settings, r *report) error {
	c, err := newEndpoints()
	if err != nil {
		return err
	}
	defer func() { _ = c.server.Close() }()
	p.relays = hangingRelays(c.addr)
	defer func() { p.relays = "" }()
	d, err := p.site(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	peak, err := d.run(ctx, d.sender(s.conns, 0), s.seconds)
	if err != nil {
		return err
	}
	l := &latencies{rate: peak.goodput() / peakPart}
	for round := range s.rounds {
		if err := d.settle(ctx); err != nil {
			return err
		}
		if err := l.round(ctx, d, c, round); err != nil {
			return err
		}
	}
	slices.Sort(l.queryable)
	r.latencies = l
	return nil
}

// round measures each thing once.
func (l *latencies) round(ctx context.Context, d *site, c *endpoints, round int) error {
	fsync, err := fsyncP99(d.dir)
	if err != nil {
		return err
	}
	calm, err := d.run(ctx, d.sender(d.s.conns, l.rate), d.s.seconds)
	if err != nil {
		return err
	}
	l.fsync, l.accepted, l.acceptedP50 = append(l.fsync, fsync), append(l.accepted, calm.p(0.99)), append(l.acceptedP50, calm.p(0.5))
	if err := l.probe(ctx, d, round); err != nil {
		return err
	}
	if err := c.calm(ctx, d.daemon, d.s, round); err != nil {
		return err
	}
	l.calledP50, l.calledP99 = append(l.calledP50, c.p(0.5)), append(l.calledP99, c.p(0.99))
	return nil
}

// probe measures how long readings take until they can be queried, under the same load.
// The queries of the probers take a part of the processors, so that this is not done
// while acknowledgements are measured.
func (l *latencies) probe(ctx context.Context, d *site, round int) error {
	ctxLoad, cancel := context.WithTimeout(ctx, d.s.seconds)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, probers)
	found := make([][]time.Duration, probers)
	for i := range probers {
		wg.Go(func() { found[i], errs[i] = d.probe(ctx, ctxLoad, round, i) })
	}
	_, err := d.run(ctxLoad, d.sender(d.s.conns, l.rate), d.s.seconds)
	wg.Wait()
	for _, some := range found {
		d.acceptedSum += int64(len(some))
		l.queryable = append(l.queryable, some...)
	}
	return errors.Join(append(errs, err)...)
}

// fsyncP99 is how long the disk takes for what a journal does: append and sync.
func fsyncP99(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	block, took := make([]byte, fsyncBytes), make([]time.Duration, fsyncs)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return quantile(took, 0.99), nil
}

// probe sends a frame, asks InfluxDB until it has the reading, and sends the next
// one, until during ends.
func (d *site) probe(ctx, during context.Context, round, i int) (found []time.Duration, err error) {
	if d.beside.influx == nil {
		return nil, nil
	}
	// A network never sends a number twice; those of the senders are lower.
	for n := int64(i+1)*1e8 + int64(round)*1e6; during.Err() == nil; n++ {
		one := d.s
		one.conns, one.devices, one.firstDevice = 1, 1, int64(probeDevice+i)
		l := newLoad(d.addr, d.token, one)
		l.base, l.first = d.base, n
		start := time.Now()
		if err := l.send(ctx, 1); err != nil {
			return nil, err
		}
		text := fmt.Sprintf(`SELECT count(value) FROM temperature WHERE identifier = 'a840416b2c%06x' AND time = %d`,
			one.firstDevice, l.base.Add(time.Duration(n)*time.Microsecond).UnixNano())
		if err := servers.UntilEvery(ctx, probeEvery, time.Minute, "a reading in InfluxDB", func() bool {
			n, err := d.count(ctx, url.Values{"db": {"bench"}, "q": {text}})
			return err == nil && n == 1
		}); err != nil {
			return nil, err
		}
		found = append(found, time.Since(start))
	}
	return found, nil
}

// calm sends messages at a rate and waits for all of them at their endpoints.
func (c *endpoints) calm(ctx context.Context, d *daemon, s settings, round int) error {
	c.begin()
	count, start := int64(s.seconds.Seconds()*calmRate), time.Now()
	client := newClient(s.conns)
	defer client.CloseIdleConnections()
	if err := spread(s, span{end: count}, func(n int64) error {
		sleep(ctx, time.Until(start.Add(time.Duration(n)*time.Second/calmRate)))
		text := fmt.Sprintf("calm %d message %d", round, n)
		c.send(text)
		return post(ctx, client, d, "calm"+strconv.Itoa(round)+"-"+strconv.FormatInt(n, 10), fmt.Sprintf("44780010%02d1234", n%healthyEndpoints), text)
	}); err != nil {
		return err
	}
	return servers.Until(ctx, time.Minute, "every message at its endpoint", func() bool { return int64(c.arrived()) == count })
}

func (r *report) printLatency(row func(cells ...any)) {
	l := r.latencies
	if l == nil {
		return
	}
	defer row()
	middle := func(all []time.Duration) time.Duration {
		return time.Duration(median(all, func(d time.Duration) float64 { return float64(d) })).Round(10 * time.Microsecond)
	}
	fsync := middle(l.fsync)
	row(fmt.Sprintf("latency at a tenth of the peak, %.0f frames and then %d messages a second", l.rate, calmRate), "found", "aim")
	row("p99 of the disk's own fsync", fsync, "")
	row("p50 of a frame's acknowledgement", middle(l.acceptedP50), "")
	row("p99 of a frame's acknowledgement", middle(l.accepted), "≤ "+(fsync+aimFsyncPlus).String())
	if len(l.queryable) > 0 {
		row(fmt.Sprintf("frame to queryable reading, p50 and p99 of %d", len(l.queryable)),
			fmt.Sprint(quantile(l.queryable, 0.5).Round(time.Millisecond), ", ", quantile(l.queryable, 0.99).Round(time.Millisecond)), "≤ "+aimQueryable.String())
	}
	row("message received to endpoint called, p50", middle(l.calledP50), "≤ "+aimCalledP50.String())
	row("message received to endpoint called, p99", middle(l.calledP99), "≤ "+aimCalledP99.String())
}
