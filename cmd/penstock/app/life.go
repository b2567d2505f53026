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

// process processes one kind of traffic until ctx ends. If the journal fails, it logs the error
// and starts again.
func (g *Gateway) process(ctx context.Context, in *intake.Intake) {
	for ctx.Err() == nil {
		if err := g.gate.Run(ctx, in.Run); err != nil {
			g.log.Error("processing failed; it starts again in a second", "kind", string(in.Kind()), "error", err)
			relay.Sleep(ctx, time.Second)
		}
	}
}

// housekeeping deletes the states of events whose journal entries were deleted.
func (g *Gateway) housekeeping(ctx context.Context) {
	for relay.Sleep(ctx, time.Hour) {
		for _, intake := range g.intakes {
			if err := intake.Trim(ctx); err != nil {
				g.log.Warn("event states of deleted journal entries were not deleted", "kind", string(intake.Kind()), "error", err)
			}
		}
	}
}

// sweepEvery is the interval at which expired records are deleted.
const sweepEvery = 5 * time.Minute

// sweep deletes expired records. The gateways take turns.
func (g *Gateway) sweep(ctx context.Context) {
	for relay.Sleep(ctx, sweepEvery/5) {
		isTurn, err := g.records.Gateways.Turn(ctx, "sweep", sweepEvery)
		if err == nil && isTurn {
			err = g.sweepRecords(ctx)
		}
		if err != nil && ctx.Err() == nil {
			g.log.Warn("expired records were not deleted", "error", err)
		}
	}
}

// sweepRecords deletes expired records, unless the clock has jumped.
func (g *Gateway) sweepRecords(ctx context.Context) error {
	if g.clock.hasJumped() {
		return nil
	}
	return g.records.sweep(ctx, g.clock.now())
}

// measure calls read ten seconds after the start and then after each interval. The returned function
// returns the last result.
func measure[T any](g *Gateway, label string, interval time.Duration, read func(context.Context) (T, error)) func() T {
	var latest atomic.Pointer[T]
	latest.Store(new(T))
	g.onStart(func(ctx context.Context) {
		for wait := 10 * time.Second; relay.Sleep(ctx, wait); wait = interval {
			if result, err := read(ctx); err != nil {
				g.log.Warn("measurement failed", "subject", label, "error", err)
			} else {
				latest.Store(&result)
			}
		}
	})
	return func() T { return *latest.Load() }
}

// accountFigures returns a function that counts the records of each account.
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
		usages, err := g.records.Usage.AccountUsages(ctx, usage.MonthOf(now))
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
		usageByAccount := make(map[relay.AccountID]usage.AccountUsage, len(usages))
		for _, u := range usages {
			usageByAccount[u.Account] = u
		}
		figures := make([]admin.AccountFigures, len(accounts))
		for i, a := range accounts {
			figures[i] = admin.AccountFigures{
				ID: a.ID, Name: a.Name, Devices: deviceCounts[a.ID].Devices, Silent: deviceCounts[a.ID].Silent,
				RaisedAlarms: alarms[a.ID], SIMs: sims[a.ID], SIMsAtLimit: usageByAccount[a.ID].AtLimit, UsageBytes: usageByAccount[a.ID].Bytes,
			}
			if balance, known := credits[a.ID]; known {
				figures[i].Credits = &balance
			}
		}
		return figures, nil
	}
}

// sizes returns the disk usage of each kind of records, in bytes.
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

// expireEvery is the interval at which expired readings are deleted. Readings are deleted at
// most this long after the retention_days of their sensor.
const expireEvery = time.Hour

// expire deletes expired readings at the start, then each hour, and a minute after a failure. It
// skips an hourly deletion if another gateway has made one in the last half hour. It never skips the
// one at the start, because a gateway that is restarted often never runs for an hour.
func (g *Gateway) expire(ctx context.Context) {
	due := true
	for pause := time.Duration(0); relay.Sleep(ctx, pause); {
		pause = expireEvery
		isTurn, err := g.records.Gateways.Turn(ctx, "expire readings", expireEvery/2)
		if err == nil && !isTurn && !due {
			continue
		}
		due = false
		if err := g.expireReadings(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("expired readings were not deleted, trying again in a minute", "error", err)
			pause, due = time.Minute, true
		}
	}
}

// expireReadings deletes expired readings of all accounts, unless the clock has jumped.
func (g *Gateway) expireReadings(ctx context.Context) error {
	if g.clock.hasJumped() {
		return nil
	}
	accounts, err := g.records.Accounts.Accounts(ctx)
	for _, a := range accounts {
		err = errors.Join(err, g.devices.Expire(ctx, a.ID))
	}
	return err
}

// close unbinds from SMSCs, stops accepting, stops processing, waits for deliveries in progress,
// and closes the back ends.
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
