package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// What frames are meant to show beside Telegraf and with embedded back ends.
const (
	aimTelegraf    = 1.3 // frames accepted a second, and stored
	aimTelegrafCPU = 0.8 // of program and stores, at most
	aimEmbedded    = 0.6 // of frames stored a second with Redis and InfluxDB
)

// framePeers receive frames beside the gateway that is measured.
type framePeers struct {
	telegraf *telegraf     // nil: there is none
	embedded *daemon       // nil: the gateway that is measured is embedded itself
	sparse   *readingsOnly // nil: there is no Telegraf

	sentTelegraf, sentEmbedded, sizeBefore, sentBefore int64
}

// framePeers starts what there can be: without its source Telegraf is left out with a
// word.
func (p *peers) framePeers(ctx context.Context, d *daemon, floor *bare, s settings, r *report) (*framePeers, error) {
	f := &framePeers{}
	if s.embedded {
		return f, nil
	}
	t, err := p.telegraf(ctx, d, telegrafRadio)
	if err != nil {
		r.noTelegraf = oneLine(err)
	} else {
		f.telegraf = t
		warmUp := s
		warmUp.seconds /= 5
		round, err := t.round(ctx, warmUp, 0)
		if err != nil {
			return nil, err
		}
		f.sentTelegraf = round.count
		if f.sparse, err = p.readingsOnly(ctx, floor, s); err != nil {
			return nil, err
		}
	}
	s.embedded = true
	if f.embedded, err = p.daemon(ctx, s); err != nil {
		return nil, err
	}
	if f.sentEmbedded, err = warm(ctx, f.embedded, floor, s); err != nil {
		return nil, err
	}
	f.sentBefore, f.sizeBefore = f.sentEmbedded, f.embedded.readingsSize()
	return f, nil
}

// round loads each once.
func (f *framePeers) round(ctx context.Context, s settings, r *report) error {
	if f.telegraf != nil {
		round, err := f.telegraf.round(ctx, s, f.sentTelegraf)
		if err != nil {
			return err
		}
		f.sentTelegraf += round.count
		r.telegraf = append(r.telegraf, round)
		if err := f.sparse.round(ctx, s, r); err != nil {
			return err
		}
	}
	if f.embedded != nil {
		round, err := f.embedded.round(ctx, s, f.sentEmbedded)
		if err != nil {
			return err
		}
		f.sentEmbedded += round.count
		r.embedded = append(r.embedded, round)
	}
	return nil
}

func (f *framePeers) stop() {
	if f.sparse != nil {
		f.sparse.gateway.stop()
	}
	if f.embedded != nil {
		f.embedded.stop()
	}
}

// reconcile compares what was sent with what is stored. What Telegraf lacks is
// printed: it promises nothing.
func (f *framePeers) reconcile(ctx context.Context, r *report) error {
	if f.telegraf != nil {
		stored, err := f.telegraf.count(ctx)
		if err != nil {
			return err
		}
		r.telegrafLost = f.sentTelegraf - stored
		if err := f.sparse.reconcile(ctx, r); err != nil {
			return err
		}
	}
	if d := f.embedded; d != nil {
		stored, err := d.countPoints(ctx)
		if err != nil {
			return err
		}
		r.reconcile("frames with embedded back ends", f.sentEmbedded, stored, d.quarantined())
		r.readingBytes = float64(d.readingsSize()-f.sizeBefore) / float64(readingsAFrame*(f.sentEmbedded-f.sentBefore))
	}
	return nil
}

// readingsAFrame is how many readings a frame of the load has.
const readingsAFrame = 2

// readingsSize is how many bytes the embedded readings take on disk, the log of what
// was written last included.
func (d *daemon) readingsSize() (bytes int64) {
	files, _ := filepath.Glob(filepath.Join(d.dir, "readings", "readings.db*"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// printFramePeers prints a row each, with ratios to the bare handler, and the ratios
// that are aimed at.
func (r *report) printFramePeers(row func(cells ...any)) {
	for _, one := range []struct {
		name   string
		rounds []frameRound
	}{
		{"Telegraf", r.telegraf}, {"embedded", r.embedded},
		{"readings only", r.readingsOnly.gateway}, {"readings only, Telegraf", r.readingsOnly.telegraf},
	} {
		if len(one.rounds) == 0 {
			continue
		}
		loads := each(one.rounds, frameRound.load)
		row(one.name+": frames accepted", rate(median(loads, outcome.rate)), ratio(ratios(one.rounds, frameRound.rate, r.bare, outcome.rate)), "",
			number(median(loads, outcome.micros)), took(loads, p50), took(loads, p99))
		row(one.name+": accepted and stored", rate(median(one.rounds, frameRound.storedRate)), ratio(ratios(one.rounds, frameRound.storedRate, r.bare, outcome.rate)), "", "", "", "")
	}
	printTelegrafRatios(row, "", r.frames, r.telegraf)
	printTelegrafRatios(row, "readings only: ", r.readingsOnly.gateway, r.readingsOnly.telegraf)
	if len(r.embedded) > 0 {
		row("stored, embedded / with Redis and InfluxDB", "", ratio(ratios(r.embedded, frameRound.storedRate, r.frames, frameRound.storedRate)), aim(aimEmbedded), "", "", "")
	}
}

// printTelegrafRatios compares rounds of a gateway with those of a Telegraf.
func printTelegrafRatios(row func(cells ...any), what string, gateway, telegraf []frameRound) {
	if len(telegraf) == 0 {
		return
	}
	beside := func(of func(frameRound) float64) string { return ratio(ratios(gateway, of, telegraf, of)) }
	row(what+"accepted / Telegraf's", "", beside(frameRound.rate), aim(aimTelegraf), "", "", "")
	row(what+"stored / Telegraf's", "", beside(frameRound.storedRate), aim(aimTelegraf), "", "", "")
	row(what+"CPU of program and stores / Telegraf's", "", beside(frameRound.allMicros), "≤ "+ratio(aimTelegrafCPU), "", "", "")
}

// ratios is the median of a figure of rounds beside a figure of other rounds.
func ratios[A, B any](rounds []A, of func(A) float64, others []B, ofOther func(B) float64) float64 {
	all := make([]float64, len(rounds))
	for i := range all {
		all[i] = of(rounds[i]) / ofOther(others[i])
	}
	return median(all, same)
}

// printFrameCPU says what a frame costs each of the processes, and what Telegraf and
// the embedded store are to be known for.
func (r *report) printFrameCPU(say func(format string, args ...any)) {
	sayTelegraf(say, "the same of Telegraf", r.telegraf, r.telegrafLost)
	if o := r.readingsOnly; len(o.gateway) > 0 {
		say("readings only, µs of CPU per frame: %s\n", cpuEach(each(o.gateway, frameRound.load), "the load's client"))
		sayTelegraf(say, "readings only, the same of Telegraf", o.telegraf, o.lost)
	}
	if r.noTelegraf != "" {
		say("without Telegraf, which could not be built: %s\n", r.noTelegraf)
	}
	if len(r.embedded) > 0 {
		say("embedded, µs of CPU per frame: %s; bytes on disk for a reading, radio data included: %.0f\n",
			number(median(each(r.embedded, frameRound.load), outcome.micros)), r.readingBytes)
	}
}

func sayTelegraf(say func(format string, args ...any), what string, rounds []frameRound, lost int64) {
	if len(rounds) == 0 {
		return
	}
	all := each(rounds, frameRound.load)
	say("%s: %s, InfluxDB %s; frames acknowledged and not stored: %d\n", what, number(median(all, outcome.micros)),
		number(median(all, func(o outcome) float64 { return outcome{count: o.count, cpu: o.beside.influx}.micros() })), lost)
}

// readingsOnly are a gateway and a Telegraf that store the readings of frames and none of
// their radio data. They share an InfluxDB of their own.
type readingsOnly struct {
	gateway            *daemon
	telegraf           *telegraf
	sent, sentTelegraf int64
}

// readingsOnlyRounds are their measurements.
type readingsOnlyRounds struct {
	gateway, telegraf []frameRound
	lost              int64 // of Telegraf's frames
}

func (p *peers) readingsOnly(ctx context.Context, floor *bare, s settings) (o *readingsOnly, err error) {
	env := p.env
	p.env = append(env[:len(env):len(env)], "PENSTOCK_READINGS_RADIO_DATA=off")
	defer func() { p.env = env }()
	o = &readingsOnly{}
	if o.gateway, err = p.daemon(ctx, s); err != nil {
		return nil, err
	}
	if o.sent, err = warm(ctx, o.gateway, floor, s); err != nil {
		return nil, err
	}
	if o.telegraf, err = p.telegraf(ctx, o.gateway, ""); err != nil {
		return nil, err
	}
	s.seconds = time.Second
	round, err := o.telegraf.round(ctx, s, 0)
	o.sentTelegraf = round.count
	return o, err
}

// round loads each once.
func (o *readingsOnly) round(ctx context.Context, s settings, r *report) error {
	g, err := o.gateway.round(ctx, s, o.sent)
	if err != nil {
		return err
	}
	t, err := o.telegraf.round(ctx, s, o.sentTelegraf)
	if err != nil {
		return err
	}
	o.sent, o.sentTelegraf = o.sent+g.count, o.sentTelegraf+t.count
	r.readingsOnly.gateway, r.readingsOnly.telegraf = append(r.readingsOnly.gateway, g), append(r.readingsOnly.telegraf, t)
	return nil
}

func (o *readingsOnly) reconcile(ctx context.Context, r *report) error {
	stored, err := o.gateway.countPoints(ctx)
	if err != nil {
		return err
	}
	r.reconcile("frames whose readings only are stored", o.sent, stored, o.gateway.quarantined())
	stored, err = o.telegraf.count(ctx)
	r.readingsOnly.lost = o.sentTelegraf - stored
	return err
}
