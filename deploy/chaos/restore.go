package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How long a restore lets things go on.
const (
	sinceBackup = 4 * time.Second // of the time that the backup does not have
	inFlight    = 2 * time.Second // of what had begun when processing stopped
)

// databaseFaults are those of a PostgreSQL without a standby.
func (s *site) databaseFaults(server *servers.Server, addr string) []fault {
	return []fault{
		{"PostgreSQL's other hosts refuse and never answer", func(ctx context.Context, lasts time.Duration) error { return s.deadHosts(ctx, addr, lasts) }},
		{"a token is added and PostgreSQL killed", func(ctx context.Context, lasts time.Duration) error {
			return s.unnoticed(ctx, func() error {
				return errors.Join(s.admin(ctx, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, nil), killed(ctx, server, lasts))
			})
		}},
		{"the inventory is applied and PostgreSQL killed", func(ctx context.Context, lasts time.Duration) error {
			return s.unnoticed(ctx, func() error {
				return errors.Join(s.admin(ctx, http.MethodPut, "/admin/inventory", string(s.inventory()), nil), killed(ctx, server, lasts))
			})
		}},
		{"a gateway is restarted and PostgreSQL killed", func(ctx context.Context, lasts time.Duration) error {
			return s.unnoticed(ctx, func() error {
				g := s.gateway()
				g.balanced.Lock() // it knows no tokens
				defer g.balanced.Unlock()
				g.end(syscall.SIGTERM)
				return errors.Join(s.startGateway(ctx, g), killed(ctx, server, lasts), g.ready(ctx))
			})
		}},
		{"PostgreSQL is put back to a backup", func(ctx context.Context, lasts time.Duration) error { return s.restored(ctx, server, lasts) }},
	}
}

// deadHosts restarts a gateway with hosts in the URL of its database that refuse and that
// never answer, in front of the real one.
func (s *site) deadHosts(ctx context.Context, addr string, lasts time.Duration) error {
	silent, err := newProxy(addr)
	if err != nil {
		return err
	}
	silent.begin(stalled)
	defer func() {
		silent.heal()
		_ = silent.listener.Close()
	}()
	g := s.gateway()
	env := g.env
	g.end(syscall.SIGTERM)
	g.env = append(slices.Clone(env), "PENSTOCK_DATABASE_URL="+servers.PostgresURL(servers.FreeAddr()+","+silent.addr+","+addr))
	if err := s.startGateway(ctx, g); err != nil {
		return err
	}
	wait(ctx, lasts)
	g.end(syscall.SIGTERM)
	g.env = env
	return s.startGateway(ctx, g)
}

// restored puts PostgreSQL back to a backup while the gateways run. What is written
// directly stands still meanwhile, for it is not in the journal; everything else goes
// on, also frames of devices that the backup does not have. Once the gateways say that
// processing has stopped, nothing leaves until `penstock recover`.
func (s *site) restored(ctx context.Context, server *servers.Server, lasts time.Duration) error {
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
		if err := s.awaitEach(ctx, "to record a newer state than that of the backup", func(g *gateway) bool {
			info, err := os.Stat(filepath.Join(g.dir, "database"))
			return err == nil && info.ModTime().After(started)
		}); err != nil {
			return err
		}
		if err := replaced(ctx, server, backup, server.Dir); err != nil {
			return err
		}
		if err := s.awaitEach(ctx, "to say that processing has stopped", func(g *gateway) bool { return g.halted(ctx) }); err != nil {
			return err
		}
		wait(ctx, inFlight)
		departed := s.departures()
		wait(ctx, lasts)
		if n := s.departures() - departed; n > 0 {
			s.note(fmt.Sprintf("%d messages and deliveries left while processing had stopped", n))
		}
		if err := s.recover(ctx); err != nil {
			return err
		}
		wait(ctx, sinceBackup)
		return nil
	})
}

// awaitEach waits until holds is true of each gateway.
func (s *site) awaitEach(ctx context.Context, label string, holds func(*gateway) bool) error {
	for _, g := range s.gateways {
		if err := servers.Until(ctx, servers.StartTime, g.name+" "+label, func() bool { return holds(g) }); err != nil {
			return err
		}
	}
	return nil
}

// replaced kills a server, replaces a directory by a copy of another, and starts it.
func replaced(ctx context.Context, server *servers.Server, src, dst string) error {
	if err := errors.Join(server.Kill(ctx), os.RemoveAll(dst)); err != nil {
		return err
	}
	if output, err := exec.CommandContext(ctx, "cp", "-a", src, dst).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, output)
	}
	return server.Start(ctx)
}

// awaitDirect waits until everything that was written directly is there and done.
func (s *site) awaitDirect(ctx context.Context) error {
	var missing string
	err := servers.UntilEvery(ctx, time.Second, s.settings.settle, "what is written directly to be done", func() bool {
		_ = s.operate(ctx)
		f := findings{}
		if err := errors.Join(s.findMessages(ctx, f), s.findJobs(ctx, f), s.findClaims(ctx, f), s.findDevices(ctx, f)); err != nil {
			missing = err.Error()
			return false
		}
		for _, k := range s.kinds() {
			if v := s.ledger.reconcile(k.name, f); k.direct && !v.clean() {
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

// departures is the number of messages and deliveries that have left the gateways.
func (s *site) departures() int {
	s.smsc.mu.Lock()
	n := s.smsc.taken
	s.smsc.mu.Unlock()
	s.sink.seenMu.Lock()
	defer s.sink.seenMu.Unlock()
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
		if output, err := cmd.CombinedOutput(); err != nil && g.halted(ctx) { // it may go on since another has recovered
			return fmt.Errorf("%s: recover: %w: %s", g.name, err, output)
		}
	}
	for _, g := range s.gateways {
		if err := g.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newDevices is the number of devices created after the backup of a restore.
const newDevices = 4

// withNewDevices does something while devices that no frame has named before send one
// reading after the other.
func (s *site) withNewDevices(ctx context.Context, do func() error) error {
	start := s.restores * newDevices
	s.restores++
	var sent [newDevices]int
	return during(newDevices, 100*time.Millisecond, func(worker int) {
		device := start + worker
		r := s.reading(ofNew, device%devicesEach+devicesEach*(1000*(device/devicesEach)+sent[worker]))
		sent[worker]++
		s.postReading(ctx, r, genericPath, r.generic())
	}, do)
}
