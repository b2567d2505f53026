package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
)

// run processes one kind of traffic until ctx ends. An earlier end is a fault of the
// journal, which is logged before processing starts again.
func (d *Gateway) run(ctx context.Context, in *intake.Intake) {
	for ctx.Err() == nil {
		if err := d.gate.Run(ctx, in.Run); err != nil {
			d.log.Error("processing stopped, starting again", "kind", string(in.Kind()), "error", err)
			relay.Sleep(ctx, time.Second)
		}
	}
}

// housekeeping deletes the states of events whose journal records are gone.
func (d *Gateway) housekeeping(ctx context.Context) {
	for relay.Sleep(ctx, time.Hour) {
		for _, intake := range d.intakes {
			if err := intake.Trim(ctx); err != nil {
				d.log.Warn("event states of deleted journal entries were not deleted", "kind", string(intake.Kind()), "error", err)
			}
		}
	}
}

// sweepEvery is the interval at which records that have expired are deleted.
const sweepEvery = 5 * time.Minute

// sweep deletes records that have expired, at one of the gateways.
func (d *Gateway) sweep(ctx context.Context) {
	for relay.Sleep(ctx, sweepEvery/5) {
		mine, err := d.records.Gateways.Turn(ctx, "sweep", sweepEvery)
		if err == nil && mine {
			err = d.sweepRecords(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("expired records were not deleted", "error", err)
		}
	}
}

// sweepRecords deletes records that have expired, unless the clock has jumped.
func (d *Gateway) sweepRecords(ctx context.Context) error {
	if d.clock.jumps() {
		return nil
	}
	return d.records.sweep(ctx, d.clock.now())
}

// watchSizes has the disk usage of the records measured each hour, and soon after the
// start, and returns a function that returns the bytes by kind that were measured last.
func (d *Gateway) watchSizes() func() map[string]int64 {
	var lastPointer atomic.Pointer[map[string]int64]
	lastPointer.Store(new(map[string]int64))
	d.onStart(func(ctx context.Context) {
		for wait := 10 * time.Second; relay.Sleep(ctx, wait); wait = time.Hour {
			sizes, err := d.records.DB.Sizes(ctx)
			if err == nil && d.cfg.Influx.URL == "" {
				var file os.FileInfo
				if file, err = os.Stat(filepath.Join(d.cfg.DataDir, readingsDir, readings.File)); err == nil {
					sizes["readings"] = file.Size()
				}
			}
			if err != nil {
				d.log.Warn("cannot read the size of the records", "error", err)
				continue
			}
			lastPointer.Store(&sizes)
		}
	})
	return func() map[string]int64 { return *lastPointer.Load() }
}

// expireEvery is the interval at which readings that sensors no longer keep are deleted. A
// reading outlives its sensor's retention_days by this much at most.
const expireEvery = time.Hour

// expire deletes expired readings, account after account: at the start, even if
// another gateway did so recently, since a gateway may never run for an hour, and
// then each hour, or a minute after a failure. Accounts that one pass does not reach are
// next in the following.
func (d *Gateway) expire(ctx context.Context) {
	due := true
	for pause := time.Duration(0); relay.Sleep(ctx, pause); {
		pause = expireEvery
		mine, err := d.records.Gateways.Turn(ctx, "expire readings", expireEvery/2)
		if err == nil && !mine && !due {
			continue
		}
		due = false
		if err := d.expireReadings(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("old readings were not deleted, trying again in a minute", "error", err)
			pause, due = time.Minute, true
		}
	}
}

// expireReadings deletes expired readings of all accounts, unless the clock has jumped.
func (d *Gateway) expireReadings(ctx context.Context) error {
	if d.clock.jumps() {
		return nil
	}
	accounts, err := d.records.Accounts.Accounts(ctx)
	for _, a := range accounts {
		err = errors.Join(err, d.devices.Expire(ctx, a.ID))
	}
	return err
}

// close drains: it unbinds from SMSCs, stops accepting, ends processing, lets attempts in
// flight finish, and closes the back ends.
func (d *Gateway) close(ctx context.Context) error {
	var errs []error
	d.carriers.unbind()
	if d.app != nil {
		errs = append(errs, d.app.ShutdownWithContext(ctx))
	}
	errs = append(errs, d.carriers.close(ctx))
	if d.started {
		errs = append(errs, d.submit.Stop(ctx))
	}
	d.stop()
	d.running.Wait()
	if d.started {
		errs = append(errs, d.jobs.Stop(ctx), d.queue.Stop(ctx))
	}
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	return errors.Join(errs...)
}
