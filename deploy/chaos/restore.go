package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How long a restore lets things go on.
const (
	sinceBackup = 4 * time.Second // of the time that the backup does not have
	inFlight    = 2 * time.Second // of what had begun when processing stopped
)

// putBack is the fault that has deliveries made again that the backup does not have.
const putBack = "PostgreSQL is put back to a backup"

// restored puts PostgreSQL back to a backup while the gateways run. What is written
// directly stands still meanwhile, for it is not in the journal; everything else goes
// on, also frames of devices that the backup does not have. Once the gateways say that
// processing has stopped, nothing leaves until `penstock recover`.
func (s *site) restored(server *servers.Server) func(context.Context, time.Duration) error {
	return func(ctx context.Context, lasts time.Duration) error {
		s.direct.Lock()
		defer s.direct.Unlock()
		if err := s.awaitDirect(ctx); err != nil {
			return err
		}
		backup := server.Dir + "-backup"
		defer func() { _ = os.RemoveAll(backup) }()
		if err := replaced(ctx, server, server.Dir, backup); err != nil {
			return err
		}
		started := time.Now()
		return s.withNewDevices(ctx, func() error {
			wait(ctx, sinceBackup)
			for _, g := range s.gateways {
				if err := servers.Until(ctx, servers.StartTime, g.name+" to record a newer state than that of the backup", func() bool {
					info, err := os.Stat(filepath.Join(g.dir, "database"))
					return err == nil && info.ModTime().After(started)
				}); err != nil {
					return err
				}
			}
			if err := replaced(ctx, server, backup, server.Dir); err != nil {
				return err
			}
			for _, g := range s.gateways {
				if err := servers.Until(ctx, servers.StartTime, g.name+" to say that processing has stopped", func() bool { return g.halted(ctx) }); err != nil {
					return err
				}
			}
			wait(ctx, inFlight)
			left := s.left()
			wait(ctx, lasts)
			if n := s.left() - left; n > 0 {
				s.note(fmt.Sprintf("%d messages and deliveries left while processing had stopped", n))
			}
			if err := s.recover(ctx); err != nil {
				return err
			}
			wait(ctx, sinceBackup)
			return nil
		})
	}
}

// replaced kills a server, replaces a directory by a copy of another, and starts it.
func replaced(ctx context.Context, server *servers.Server, from, to string) error {
	if err := server.Kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return server.Start(ctx)
}

// awaitDirect waits until everything that was written directly is there and done.
func (s *site) awaitDirect(ctx context.Context) error {
	var missing string
	err := servers.UntilEvery(ctx, time.Second, s.settings.settle, "what is written directly to be done", func() bool {
		_ = s.operate(ctx)
		f := findings{}
		if err := errors.Join(s.findMessages(ctx, f), s.findJobs(ctx, f), s.findClaims(ctx, f), s.findSubscribers(ctx, f)); err != nil {
			missing = err.Error()
			return false
		}
		for _, k := range s.kinds() {
			if v := s.ledger.reconcile(k.name, f); k.direct() && !v.clean() {
				missing = fmt.Sprint(k.name, v.lost, v.undone, v.unaccounted)
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return nil
}

// left is how many messages and deliveries have left the gateways.
func (s *site) left() int {
	s.smsc.mu.Lock()
	submitted := s.smsc.taken
	s.smsc.mu.Unlock()
	s.sink.seenMu.Lock()
	defer s.sink.seenMu.Unlock()
	n := submitted
	for _, a := range s.sink.seen {
		n += a.times
	}
	return n
}

// halted reports whether a gateway says that processing has stopped.
func (g *gateway) halted(ctx context.Context) bool {
	_, text := servers.Get(ctx, "http://"+g.addr+"/readyz")
	return strings.Contains(string(text), "Processing has stopped")
}

// recover runs `penstock recover` on each gateway that says that processing has
// stopped, and waits until all are ready.
func (s *site) recover(ctx context.Context) error {
	for _, g := range s.gateways {
		if !g.halted(ctx) {
			continue
		}
		cmd := exec.CommandContext(ctx, g.binary, "recover")
		cmd.Env = append(os.Environ(), g.env...)
		if out, err := cmd.CombinedOutput(); err != nil && g.halted(ctx) { // it may go on since another has recovered
			return fmt.Errorf("%s: recover: %w: %s", g.name, err, out)
		}
	}
	for _, g := range s.gateways {
		if err := g.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newDevices is how many devices a restore has that its backup does not have.
const newDevices = 4

// withNewDevices does something while devices that no frame has named before send one
// reading after the other.
func (s *site) withNewDevices(ctx context.Context, do func() error) error {
	first := int(s.restores.Add(1)-1) * newDevices
	ended := make(chan struct{})
	var all sync.WaitGroup
	for i := range newDevices {
		all.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ended:
					return
				case <-tick.C:
				}
				n := s.ledger.readings[ofNew].next((first + i) % devicesEach)
				device, at := s.reading(ofNew, n)
				s.postReading(ctx, ofNew, n, "/webhooks/generic?decoder_id=sent", fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, device, n, at.Format(time.RFC3339)))
			}
		})
	}
	err := do()
	close(ended)
	all.Wait()
	return err
}
