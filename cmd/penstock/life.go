package main

import (
	"context"
	"errors"
	"time"

	"github.com/penstock/penstock/ingest/intake"
)

// run processes one kind of traffic. What ends it before the program does is a
// fault of the journal; it is said, and tried again.
func (d *daemon) run(ctx context.Context, in *intake.Intake) {
	for ctx.Err() == nil {
		if err := in.Run(ctx); err != nil {
			d.log.Error("processing stopped, starting again", "kind", string(in.Kind()), "error", err)
			pause(ctx, time.Second)
		}
	}
}

// keepHouse forgets the marks of events whose records are gone.
func (d *daemon) keepHouse(ctx context.Context) {
	for pause(ctx, time.Hour) {
		for _, in := range d.intakes {
			if err := in.Trim(ctx); err != nil {
				d.log.Warn("marks were not trimmed", "kind", string(in.Kind()), "error", err)
			}
		}
	}
}

// pause waits; it reports false when ctx is done.
func pause(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// close drains: it stops accepting, ends processing, lets attempts under way
// finish, and closes what was opened.
func (d *daemon) close(ctx context.Context) error {
	var errs []error
	d.carriers.leave()
	if d.app != nil {
		errs = append(errs, d.app.ShutdownWithContext(ctx))
	}
	errs = append(errs, d.carriers.close(ctx))
	if d.started {
		errs = append(errs, d.sending.Stop(ctx))
	}
	d.stop()
	d.running.Wait()
	if d.started {
		errs = append(errs, d.jobs.Stop(ctx), d.queue.Stop(ctx))
	}
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i](ctx))
	}
	return errors.Join(errs...)
}
