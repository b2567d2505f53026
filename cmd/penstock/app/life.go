package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// run processes one kind of traffic until ctx ends. An earlier end is a fault of the
// journal, which is logged before processing starts again.
func (g *Gateway) run(ctx context.Context, in *intake.Intake) {
	for ctx.Err() == nil {
		if err := g.gate.Run(ctx, in.Run); err != nil {
			g.log.Error("processing stopped, starting again", "kind", string(in.Kind()), "error", err)
			relay.Sleep(ctx, time.Second)
		}
	}
}

// housekeeping deletes the states of events whose journal records are gone.
func (g *Gateway) housekeeping(ctx context.Context) {
	for relay.Sleep(ctx, time.Hour) {
		for _, intake := range g.intakes {
			if err := intake.Trim(ctx); err != nil {
				g.log.Warn("event states of deleted journal entries were not deleted", "kind", string(intake.Kind()), "error", err)
			}
		}
	}
}

// sweepEvery is the interval at which records that have expired are deleted.
const sweepEvery = 5 * time.Minute

// sweep deletes records that have expired, at one of the gateways.
func (g *Gateway) sweep(ctx context.Context) {
	for relay.Sleep(ctx, sweepEvery/5) {
		mine, err := g.records.Gateways.Turn(ctx, "sweep", sweepEvery)
		if err == nil && mine {
			err = g.sweepRecords(ctx)
		}
		if err != nil && ctx.Err() == nil {
			g.log.Warn("expired records were not deleted", "error", err)
		}
	}
}

// sweepRecords deletes records that have expired, unless the clock has jumped.
func (g *Gateway) sweepRecords(ctx context.Context) error {
	if g.clock.jumps() {
		return nil
	}
	return g.records.sweep(ctx, g.clock.now())
}

// measure calls read soon after the start and then at an interval, and returns a function
// that returns the last result.
func measure[T any](d *Gateway, label string, interval time.Duration, read func(context.Context) (T, error)) func() T {
	var last atomic.Pointer[T]
	last.Store(new(T))
	d.onStart(func(ctx context.Context) {
		for wait := 10 * time.Second; relay.Sleep(ctx, wait); wait = interval {
			if result, err := read(ctx); err != nil {
				d.log.Warn("measurement failed", "subject", label, "error", err)
			} else {
				last.Store(&result)
			}
		}
	})
	return func() T { return *last.Load() }
}

// accountFigures counts the records of every account.
func (g *Gateway) accountFigures(devices *iot.Service) func(context.Context) ([]admin.AccountFigures, error) {
	return func(ctx context.Context) ([]admin.AccountFigures, error) {
		accounts, err := g.records.Accounts.Accounts(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]relay.AccountID, len(accounts))
		for i := range accounts {
			ids[i] = accounts[i].ID
		}
		credits, err := g.records.Credit.Balances(ctx, ids)
		if err != nil {
			return nil, err
		}
		alarms, err := g.records.Rules.CountRaised(ctx)
		if err != nil {
			return nil, err
		}
		simCounts, err := g.records.SIMs.CountByState(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		months, err := g.records.Usage.Months(ctx, usage.MonthOf(now))
		if err != nil {
			return nil, err
		}
		deviceCounts, err := devices.CountDevices(ctx, now.Add(-24*time.Hour))
		if err != nil {
			return nil, err
		}
		sims := make(map[relay.AccountID]map[sim.State]int64)
		for _, c := range simCounts {
			if sims[c.Account] == nil {
				sims[c.Account] = make(map[sim.State]int64)
			}
			sims[c.Account][c.State] = c.SIMs
		}
		monthOf := make(map[relay.AccountID]usage.MonthOfAccount, len(months))
		for _, m := range months {
			monthOf[m.Account] = m
		}
		figures := make([]admin.AccountFigures, len(accounts))
		for i, a := range accounts {
			figures[i] = admin.AccountFigures{
				ID: a.ID, Name: a.Name, Devices: deviceCounts[a.ID].Devices, Silent: deviceCounts[a.ID].Silent,
				RaisedAlarms: alarms[a.ID], SIMs: sims[a.ID], SIMsAtLimit: monthOf[a.ID].AtLimit, UsageBytes: monthOf[a.ID].Bytes,
			}
			if balance, known := credits[a.ID]; known {
				figures[i].Credits = &balance
			}
		}
		return figures, nil
	}
}

// sizes returns the disk usage of the records by kind, in bytes.
func (g *Gateway) sizes(ctx context.Context) (map[string]int64, error) {
	sizes, err := g.records.DB.Sizes(ctx)
	if err != nil || g.cfg.Influx.URL != "" {
		return sizes, err
	}
	file, err := os.Stat(filepath.Join(g.cfg.DataDir, readingsDir, readings.File))
	if err == nil {
		sizes["readings"] = file.Size()
	}
	return sizes, err
}

// expireEvery is the interval at which readings that sensors no longer keep are deleted. A
// reading outlives its sensor's retention_days by this much at most.
const expireEvery = time.Hour

// expire deletes expired readings, account after account: at the start, even if
// another gateway did so recently, since a gateway may never run for an hour, and
// then each hour, or a minute after a failure. Accounts that one pass does not reach are
// next in the following.
func (g *Gateway) expire(ctx context.Context) {
	due := true
	for pause := time.Duration(0); relay.Sleep(ctx, pause); {
		pause = expireEvery
		mine, err := g.records.Gateways.Turn(ctx, "expire readings", expireEvery/2)
		if err == nil && !mine && !due {
			continue
		}
		due = false
		if err := g.expireReadings(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("old readings were not deleted, trying again in a minute", "error", err)
			pause, due = time.Minute, true
		}
	}
}

// expireReadings deletes expired readings of all accounts, unless the clock has jumped.
func (g *Gateway) expireReadings(ctx context.Context) error {
	if g.clock.jumps() {
		return nil
	}
	accounts, err := g.records.Accounts.Accounts(ctx)
	for _, a := range accounts {
		err = errors.Join(err, g.devices.Expire(ctx, a.ID))
	}
	return err
}

// close drains: it unbinds from SMSCs, stops accepting, ends processing, lets attempts in
// flight finish, and closes the back ends.
func (g *Gateway) close(ctx context.Context) error {
	var errs []error
	g.carriers.unbind()
	if g.app != nil {
		errs = append(errs, g.app.ShutdownWithContext(ctx))
	}
	errs = append(errs, g.carriers.close(ctx))
	if g.started {
		errs = append(errs, g.submit.Stop(ctx))
	}
	g.stop()
	g.running.Wait()
	if g.started {
		errs = append(errs, g.jobs.Stop(ctx), g.queue.Stop(ctx))
	}
	for i := len(g.closers) - 1; i >= 0; i-- {
		errs = append(errs, g.closers[i]())
	}
	return errors.Join(errs...)
}
