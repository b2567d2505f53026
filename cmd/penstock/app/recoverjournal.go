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

// progressEvery is the interval at which a recovery prints its progress and checks that the
// gateway that owns the journal does not run.
const progressEvery = 2 * time.Second

// recovery processes the remaining entries in the journal of a lost gateway. It uses the name of
// that gateway, so that the ids of events and deliveries are the same and no delivery is made
// twice. It accepts no traffic, does not bind to SMSCs and does not submit messages, because the
// running gateways do so.
type recovery struct {
	*Gateway
	writer io.Writer
	totals map[event.Kind]uint64 // remaining entries at the start
}

// recoverJournal recovers the journal of a data directory.
func recoverJournal(env client.Environment, dir, file string) error {
	cfg, err := config.Load(file, env.Variables)
	if err != nil {
		return err
	}
	if err := checkRecoverable(dir, cfg); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	cfg.DataDir = dir
	log := slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g, err := assemble(env.Context, cfg, log, env.Version, (*Gateway).openForRecovery)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	r := &recovery{Gateway: g, writer: env.Stdout, totals: make(map[event.Kind]uint64)}
	err = r.run(env.Context)
	if closeErrors := g.Abandon(); err == nil && closeErrors != "" {
		err = errors.New(strings.TrimPrefix(closeErrors, "; "))
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

// checkRecoverable returns an error if this process cannot recover the journal in a directory.
func checkRecoverable(dir string, cfg config.Config) error {
	for _, name := range []string{nodeFile, "journal"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s is not the data directory of a gateway (its data_dir): %w", dir, err)
		}
	}
	for _, backend := range []struct{ setting, url string }{{"database.url", cfg.Database.URL}, {"influx.url", cfg.Influx.URL}} {
		if backend.url == "" {
			return fmt.Errorf("%s is not set: without it all data is in the data directory; start a gateway with data_dir %s", backend.setting, dir)
		}
	}
	unlock, err := lockJournals(dir)
	if err != nil {
		return fmt.Errorf("the gateway runs: %w", err)
	}
	unlock()
	return nil
}

// openForRecovery opens the parts that process a journal, without the parts that accept traffic.
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

// checkOwnerIsAway returns an error while the gateway that owns the data directory sends heartbeats:
// that gateway may run with the original of a copied directory.
func (g *Gateway) checkOwnerIsAway(ctx context.Context) error {
	gateways, err := g.records.Gateways.Gateways(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, owner := range gateways {
		if owner.Node == g.node && !owner.Away(now) {
			return fmt.Errorf("gateway %s sent a heartbeat %s ago: stop it, or wait until its last heartbeat is %s ago",
				owner.Node, now.Sub(owner.SeenAt).Round(time.Second), registry.AwayAfter)
		}
	}
	return nil
}

// run processes the journal until no entries remain, and prints a summary.
func (r *recovery) run(ctx context.Context) error {
	if err := r.membership.verify(ctx); err != nil {
		return err
	}
	if reason := r.membership.HaltReason(); reason != "" {
		return fmt.Errorf("gateway %s: %s; start a gateway with data_dir %s to do so", r.node, reason, r.cfg.DataDir)
	}
	if err := r.queue.Start(r.attempter); err != nil {
		return err
	}
	for kind, intake := range r.intakes {
		r.totals[kind] = intake.Status().Lag
		r.running.Go(func() { r.process(r.background, intake) })
	}
	err := errors.Join(r.reportDamage(), r.await(ctx))
	r.stop()
	r.running.Wait()
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err = errors.Join(err, r.membership.acknowledge(drainCtx), r.queue.Stop(drainCtx))
	return errors.Join(err, r.printSummary(err == nil))
}

// reportDamage prints the unreadable parts of the journal, which are skipped.
func (r *recovery) reportDamage() error {
	for _, kind := range event.Kinds() {
		dir := filepath.Join(r.cfg.DataDir, "journal", string(kind))
		for _, gap := range r.intakes[kind].Gaps() {
			if err := r.print("%s at offset %d: %d bytes cannot be read (%s): entries %d to %d are lost\n",
				filepath.Join(dir, gap.Segment), gap.Offset, gap.Length, gap.Reason, gap.First, gap.Last); err != nil {
				return err
			}
		}
		if n := r.intakes[kind].Status().Journal.Cut; n > 0 {
			if err := r.print("%s: the last %d bytes were an incomplete entry of an unacknowledged request, and were removed\n", dir, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// await prints the progress until every journal is processed.
func (r *recovery) await(ctx context.Context) error {
	lastProgress := ""
	for {
		remaining, progress, err := r.progress(ctx)
		if err != nil && ctx.Err() == nil {
			progress += fmt.Sprintf("; waiting: %v", err)
		} else if remaining == 0 && ctx.Err() == nil {
			return nil
		}
		if progress != lastProgress {
			if err := r.print("%s\n", progress); err != nil {
				return err
			}
		}
		lastProgress = progress
		if !r.pauseUnlessDone(ctx) {
			return fmt.Errorf("interrupted; run the same command again to continue: %w", ctx.Err())
		}
		if err := r.checkOwnerIsAway(ctx); err != nil && ctx.Err() == nil && relay.KindOf(err) != relay.KindUnavailable {
			return err
		}
	}
}

// pauseUnlessDone waits for progressEvery, or until no entries remain. It returns false if ctx
// ended.
func (r *recovery) pauseUnlessDone(ctx context.Context) bool {
	const pollEvery = 50 * time.Millisecond
	for elapsed := time.Duration(0); elapsed < progressEvery; elapsed += pollEvery {
		if !relay.Sleep(ctx, pollEvery) {
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

// progress returns the number of journals with remaining entries, and a line about all journals.
func (r *recovery) progress(ctx context.Context) (remaining int, line string, err error) {
	var parts []string
	for _, kind := range event.Kinds() {
		intake := r.intakes[kind]
		s := intake.Status()
		parts = append(parts, fmt.Sprintf("%s %d of %d", kind, r.totals[kind]-min(s.Lag, r.totals[kind]), r.totals[kind]))
		if s.Outage != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", kind, s.Outage))
		}
		drained, drainErr := intake.Drained(ctx)
		if err = errors.Join(err, drainErr); !drained {
			remaining++
		}
	}
	return remaining, strings.Join(parts, ", ") + " processed", err
}

// printSummary prints the number of processed entries and, if all were processed, the next step.
func (r *recovery) printSummary(done bool) error {
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
	return r.print("no entries remain in %s; to remove the gateway from the list: DELETE /admin/gateways/%s\n", filepath.Join(r.cfg.DataDir, "journal"), r.node)
}

func (r *recovery) print(format string, args ...any) error {
	_, err := fmt.Fprintf(r.writer, format, args...)
	return err
}
