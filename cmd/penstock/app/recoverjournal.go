package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	registry "github.com/penstock/penstock/relay/gateway"
)

// progressEvery is the interval at which a recovery prints its progress and checks whether
// the gateway that owns the journal is back.
const progressEvery = 2 * time.Second

// recovery processes what the journal of a lost gateway has left, as that gateway
// would have: under its name, so that the ids of events and deliveries are the same
// and nothing is done twice. It accepts nothing, binds to no SMSC and submits no
// messages; the gateways that run do that.
type recovery struct {
	*Gateway
	writer io.Writer
	total  map[event.Kind]uint64 // entries that were left
}

// recoverJournal recovers the journal of a data directory.
func recoverJournal(w client.Environment, dir, file string) error {
	cfg, err := config.Load(file, w.Variables)
	if err != nil {
		return err
	}
	if err := recoverable(dir, cfg); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	cfg.DataDir = dir
	log := slog.New(slog.NewTextHandler(w.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := assemble(w.Context, cfg, log, w.Version, (*Gateway).openForRecovery)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	r := &recovery{Gateway: d, writer: w.Stdout, total: make(map[event.Kind]uint64)}
	err = r.run(w.Context)
	if failed := d.Abandon(); err == nil && failed != "" {
		err = errors.New(strings.TrimPrefix(failed, "; "))
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

// recoverable checks that a directory has a journal that another process can recover.
func recoverable(dir string, cfg config.Config) error {
	for _, name := range []string{nodeFile, "journal"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s is not the data directory of a gateway (its data_dir): %w", dir, err)
		}
	}
	for _, one := range []struct{ setting, url string }{{"database.url", cfg.Database.URL}, {"influx.url", cfg.Influx.URL}} {
		if one.url == "" {
			return fmt.Errorf("%s is not set: without it a gateway's data is in its data directory, and nothing is shared; start a gateway with data_dir %s", one.setting, dir)
		}
	}
	unlock, err := lockJournals(dir)
	if err != nil {
		return fmt.Errorf("the gateway runs: %w", err)
	}
	unlock()
	return nil
}

// openForRecovery opens what processes a journal, and nothing that accepts traffic.
func (g *Gateway) openForRecovery(ctx context.Context) error {
	if err := g.openDataDir(); err != nil {
		return err
	}
	stores, err := g.openBackends(ctx)
	if err != nil {
		return err
	}
	if err := g.checkOwnerIsAway(ctx); err != nil {
		return err
	}
	_, err = g.openCore(ctx, stores)
	return err
}

// checkOwnerIsAway fails while the gateway that owns the data directory sends
// heartbeats: it may run on the disk that this directory was copied from.
func (g *Gateway) checkOwnerIsAway(ctx context.Context) error {
	gateways, err := g.records.Gateways.Gateways(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, owner := range gateways {
		if owner.Node == g.node && !owner.Away(now) {
			return fmt.Errorf("gateway %s sent a heartbeat %s ago: stop it, or wait until it has sent none for %s",
				owner.Node, now.Sub(owner.SeenAt).Round(time.Second), registry.AwayAfter)
		}
	}
	return nil
}

// run processes the journal until nothing is left, and prints how it went.
func (r *recovery) run(ctx context.Context) error {
	if err := r.membership.verify(ctx); err != nil {
		return err
	}
	if reason := r.membership.Halted(); reason != "" {
		return fmt.Errorf("gateway %s: %s: start a gateway with data_dir %s for that", r.node, reason, r.cfg.DataDir)
	}
	if err := r.queue.Start(r.attempter); err != nil {
		return err
	}
	for kind, intake := range r.intakes {
		r.total[kind] = intake.Status().Lag
		r.running.Go(func() { r.Gateway.run(r.life, intake) })
	}
	err := errors.Join(r.reportDamage(), r.await(ctx))
	r.stop()
	r.running.Wait()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err = errors.Join(err, r.membership.acknowledge(drain), r.queue.Stop(drain))
	return errors.Join(err, r.summary(err == nil))
}

// reportDamage prints what of the journal cannot be read and is passed over.
func (r *recovery) reportDamage() error {
	for _, kind := range event.Kinds() {
		dir := filepath.Join(r.cfg.DataDir, "journal", string(kind))
		for _, g := range r.intakes[kind].Gaps() {
			if err := r.print("%s at offset %d: %d bytes cannot be read (%s): entries %d to %d are lost\n",
				filepath.Join(dir, g.Segment), g.Offset, g.Length, g.Reason, g.First, g.Last); err != nil {
				return err
			}
		}
		if n := r.intakes[kind].Status().Journal.Cut; n > 0 {
			if err := r.print("%s: the last %d bytes are an incomplete entry: a request that was not acknowledged; they were cut off\n", dir, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// await prints the progress until every journal is processed.
func (r *recovery) await(ctx context.Context) error {
	tail := ""
	for {
		remaining, progress, err := r.progress(ctx)
		if err != nil && ctx.Err() == nil {
			progress += fmt.Sprintf("; waits: %v", err)
		} else if remaining == 0 && ctx.Err() == nil {
			return nil
		}
		if progress != tail {
			if err := r.print("%s\n", progress); err != nil {
				return err
			}
		}
		tail = progress
		if !r.pauseUnlessDone(ctx) {
			return fmt.Errorf("interrupted; run the same command again to go on: %w", ctx.Err())
		}
		if err := r.checkOwnerIsAway(ctx); err != nil && ctx.Err() == nil && relay.KindOf(err) != relay.KindUnavailable {
			return err
		}
	}
}

// pauseUnlessDone waits for the time between two lines of progress, or until nothing
// seems to be left. It reports false if ctx ended.
func (r *recovery) pauseUnlessDone(ctx context.Context) bool {
	const look = 50 * time.Millisecond
	for waited := time.Duration(0); waited < progressEvery; waited += look {
		if !relay.Sleep(ctx, look) {
			return false
		}
		lag := uint64(0)
		for _, intake := range r.intakes {
			lag += intake.Status().Lag
		}
		if lag == 0 {
			return true
		}
	}
	return true
}

// progress returns how many journals have entries left, and one line about all.
func (r *recovery) progress(ctx context.Context) (remaining int, line string, err error) {
	var parts []string
	for _, kind := range event.Kinds() {
		intake := r.intakes[kind]
		s := intake.Status()
		parts = append(parts, fmt.Sprintf("%s %d of %d", kind, r.total[kind]-min(s.Lag, r.total[kind]), r.total[kind]))
		if s.Waiting != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", kind, s.Waiting))
		}
		drained, failed := intake.Drained(ctx)
		if err = errors.Join(err, failed); !drained {
			remaining++
		}
	}
	return remaining, strings.Join(parts, ", ") + " processed", err
}

// summary prints what was processed, and what is to be done now.
func (r *recovery) summary(done bool) error {
	var parts []string
	for _, kind := range event.Kinds() {
		s := r.intakes[kind].Status()
		part := fmt.Sprintf("%s %d", kind, s.Processed)
		if s.Quarantined > 0 {
			part += fmt.Sprintf(" (%d quarantined)", s.Quarantined)
		}
		parts = append(parts, part)
	}
	if err := r.print("gateway %s: processed %s\n", r.node, strings.Join(parts, ", ")); err != nil || !done {
		return err
	}
	return r.print("nothing is left in %s; to take the gateway off the list: DELETE /admin/gateways/%s\n", filepath.Join(r.cfg.DataDir, "journal"), r.node)
}

func (r *recovery) print(format string, args ...any) error {
	_, err := fmt.Fprintf(r.writer, format, args...)
	return err
}
