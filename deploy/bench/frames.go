package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// frames measures accepting and storing beside the bare handler, a Telegraf that
// stores the same in the same InfluxDB, and a gateway with embedded back ends: in
// turns, so that whatever else the machine does falls on all of them.
func frames(ctx context.Context, p *peers, s settings, r *report) error {
	floor, err := p.bare(ctx)
	if err != nil {
		return err
	}
	defer servers.End(floor.proc)
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	sent, err := warm(ctx, d, floor, s)
	if err != nil {
		return err
	}
	besides, err := p.framePeers(ctx, d, floor, s, r)
	if err != nil {
		return err
	}
	defer besides.stop()
	for range s.rounds {
		bare, err := floor.round(ctx, d.token, s)
		if err != nil {
			return err
		}
		f, err := d.round(ctx, s, sent)
		if err != nil {
			return err
		}
		sent += f.count
		r.bare, r.frames = append(r.bare, bare), append(r.frames, f)
		if err := besides.round(ctx, s, r); err != nil {
			return err
		}
	}
	r.memory = memory(d.pid())
	refused := d.quarantined()
	stored, err := d.countPoints(ctx)
	if err != nil {
		return err
	}
	r.reconcile("frames", sent, stored, refused)
	return besides.reconcile(ctx, r)
}

// frameRound is a load on the gateway, and what became of it.
type frameRound struct {
	outcome
	storedInLoad int64
	storedIn     time.Duration // until the last frame was stored
	busy         float64       // share of all cores in use during the load
}

func (f frameRound) load() outcome { return f.outcome }

// storedRate is the frames a second until the last one was stored.
func (f frameRound) storedRate() float64 { return float64(f.count) / f.storedIn.Seconds() }

// allMicros is the CPU of a program and of its stores per frame, in microseconds.
func (f frameRound) allMicros() float64 {
	return outcome{count: f.count, cpu: f.cpu + f.beside.postgres + f.beside.redis + f.beside.influx}.micros()
}

// round loads the gateway for a fixed time and waits for the last frame to be
// stored; first is the number of its first frame.
func (d *daemon) round(ctx context.Context, s settings, first int64) (f frameRound, err error) {
	start, before, beside, idle := time.Now(), cpu(d.pid()), d.used(), idleCPU()
	l := newLoad(d.addr, d.token, s)
	l.first = first
	if err := l.run(ctx, s.seconds); err != nil {
		return f, err
	}
	f.busy = 1 - (idleCPU()-idle).Seconds()/time.Since(start).Seconds()/float64(runtime.NumCPU())
	f.outcome = l.result()
	f.storedInLoad = d.metric("penstock_processed_total{kind=\"uplink\"}") - first
	if err := d.stored(ctx, first+f.count); err != nil {
		return f, err
	}
	f.storedIn = time.Since(start)
	f.cpu, f.beside = cpu(d.pid())-before, d.used().since(beside)
	return f, nil
}

// metricsEvery is how often the metrics are asked for: an answer takes the gateway a
// millisecond of CPU, which counts among that of the frames.
const metricsEvery = 100 * time.Millisecond

// storedPatience is how long frames may wait to be stored; those of many new devices
// take longest.
const storedPatience = 5 * time.Minute

// stored waits until so many frames were processed.
func (d *daemon) stored(ctx context.Context, n int64) error {
	return servers.UntilEvery(ctx, metricsEvery, storedPatience, "every frame processed", func() bool {
		return d.metric("penstock_processed_total{kind=\"uplink\"}") == n
	})
}

// warm sends one frame per device and a second of load, so that importing
// devices and growing memory are not part of the measurement. It returns how
// many frames were sent.
func warm(ctx context.Context, d *daemon, floor *bare, s settings) (int64, error) {
	l := newLoad(d.addr, d.token, s)
	if err := l.send(ctx, int64(s.devices)); err != nil {
		return 0, err
	}
	if err := d.stored(ctx, int64(s.devices)); err != nil {
		return 0, err
	}
	s.seconds = time.Second
	if _, err := floor.round(ctx, d.token, s); err != nil {
		return 0, err
	}
	f, err := d.round(ctx, s, int64(s.devices))
	return f.count + int64(s.devices), err
}

// countPoints queries the store itself.
func (d *daemon) countPoints(ctx context.Context) (int64, error) {
	if d.beside.influx == nil {
		// Nothing but the gateway reads its file while it runs.
		return d.metric("penstock_processed_total{kind=\"uplink\"}") - d.quarantined(), nil
	}
	return d.count(ctx, url.Values{"db": {"bench"}, "q": {`SELECT count(value) FROM temperature`}})
}

// count is the number that a query of the InfluxDB is answered with.
func (d *daemon) count(ctx context.Context, q url.Values) (int64, error) {
	var answer struct {
		Results []struct {
			Series []struct{ Values [][]any }
		}
	}
	if err := getJSON(ctx, d.influx()+"/query?"+q.Encode(), &answer); err != nil {
		return 0, err
	}
	if len(answer.Results) == 0 || len(answer.Results[0].Series) == 0 {
		return 0, errors.New("influxd has no points")
	}
	n, ok := answer.Results[0].Series[0].Values[0][1].(float64)
	if !ok {
		return 0, fmt.Errorf("influxd answered %v", answer)
	}
	return int64(n), nil
}

// quarantined is how many frames the gateway has quarantined.
func (d *daemon) quarantined() int64 { return d.metric("penstock_quarantined_total{kind=\"uplink\"}") }
