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

// The pauses of a restore.
const (
	loadTime     = 4 * time.Second // of load between backup and restore, and after the recovery
	inFlightTime = 2 * time.Second // for deliveries that began before processing stopped
)

// databaseFaults returns the faults of a PostgreSQL without a standby.
func (s *site) databaseFaults(server *servers.Server, addr string) []fault {
	return []fault{
		{"one database host refuses connections, another never answers", func(ctx context.Context, length time.Duration) error { return s.deadHosts(ctx, addr, length) }},
		{"a token is added and PostgreSQL killed", func(ctx context.Context, length time.Duration) error {
			return s.withProbes(ctx, func() error {
				return errors.Join(s.admin(ctx, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, nil), killServer(ctx, server, length))
			})
		}},
		{"the inventory is applied and PostgreSQL killed", func(ctx context.Context, length time.Duration) error {
			return s.withProbes(ctx, func() error {
				return errors.Join(s.admin(ctx, http.MethodPut, "/admin/inventory", string(s.inventory()), nil), killServer(ctx, server, length))
			})
		}},
		{"a gateway is restarted and PostgreSQL killed", func(ctx context.Context, length time.Duration) error {
			return s.withProbes(ctx, func() error {
				g := s.gateway()
				g.balanced.Lock() // without PostgreSQL a new process cannot check tokens
				defer g.balanced.Unlock()
				g.end(syscall.SIGTERM)
				return errors.Join(s.startGateway(ctx, g), killServer(ctx, server, length), g.ready(ctx))
			})
		}},
		{"PostgreSQL is restored from a backup", func(ctx context.Context, length time.Duration) error { return s.restoreBackup(ctx, server, length) }},
	}
}

// deadHosts restarts a gateway with a database URL in which a host that refuses connections and a
// host that never answers precede the real one.
func (s *site) deadHosts(ctx context.Context, addr string, length time.Duration) error {
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
	wait(ctx, length)
	g.end(syscall.SIGTERM)
	g.env = env
	return s.startGateway(ctx, g)
}

// restoreBackup restores PostgreSQL from a backup while the gateways run. Items of direct kinds are
// not sent meanwhile because the journal does not have them. All other items are sent, including
// frames of devices that are missing in the backup. Once the gateways report that processing has
// stopped, no message or delivery may leave them until `penstock recover`.
func (s *site) restoreBackup(ctx context.Context, server *servers.Server, length time.Duration) error {
	s.direct.Lock()
	defer s.direct.Unlock()
	if err := s.awaitDirect(ctx); err != nil {
		return err
	}
	backup := server.Dir + "-backup"
	defer func() { _ = os.RemoveAll(backup) }()
	if err := replaceDir(ctx, server, server.Dir, backup); err != nil {
		return err
	}
	backupAt := time.Now()
	return s.withNewDevices(ctx, func() error {
		wait(ctx, loadTime)
		if err := s.awaitEach(ctx, "to record a newer database state than the backup", func(g *gateway) bool {
			info, err := os.Stat(filepath.Join(g.dir, "database"))
			return err == nil && info.ModTime().After(backupAt)
		}); err != nil {
			return err
		}
		if err := replaceDir(ctx, server, backup, server.Dir); err != nil {
			return err
		}
		if err := s.awaitEach(ctx, "to report that processing has stopped", func(g *gateway) bool { return g.halted(ctx) }); err != nil {
			return err
		}
		wait(ctx, inFlightTime)
		departed := s.departures()
		wait(ctx, length)
		if n := s.departures() - departed; n > 0 {
			s.note(fmt.Sprintf("%d messages and deliveries were sent while processing was stopped", n))
		}
		if err := s.recover(ctx); err != nil {
			return err
		}
		wait(ctx, loadTime)
		return nil
	})
}

// awaitEach waits until cond is true for each gateway.
func (s *site) awaitEach(ctx context.Context, label string, cond func(*gateway) bool) error {
	for _, g := range s.gateways {
		if err := servers.Until(ctx, servers.StartTime, g.name+" "+label, func() bool { return cond(g) }); err != nil {
			return err
		}
	}
	return nil
}

// replaceDir kills a server, replaces the directory dst by a copy of src, and starts the server.
func replaceDir(ctx context.Context, server *servers.Server, src, dst string) error {
	if err := errors.Join(server.Kill(ctx), os.RemoveAll(dst)); err != nil {
		return err
	}
	if output, err := exec.CommandContext(ctx, "cp", "-a", src, dst).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, output)
	}
	return server.Start(ctx)
}

// awaitDirect waits until all items of direct kinds are found and done.
func (s *site) awaitDirect(ctx context.Context) error {
	var reason string
	err := servers.UntilEvery(ctx, time.Second, s.settings.settle, "items of direct kinds to be done", func() bool {
		_ = s.operate(ctx)
		f := findings{}
		if err := errors.Join(s.findMessages(ctx, f), s.findJobs(ctx, f), s.findClaims(ctx, f), s.findDevices(ctx, f)); err != nil {
			reason = err.Error()
			return false
		}
		for _, k := range s.kinds() {
			if v := s.ledger.reconcile(k.name, f); k.direct && !v.clean() {
				reason = fmt.Sprintf("%s: lost %v, not done %v, unaccounted %v", k.name, v.lost, v.undone, v.unaccounted)
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, reason)
	}
	return nil
}

// departures returns the number of messages and deliveries that have left the gateways.
func (s *site) departures() int {
	s.smsc.mu.Lock()
	n := s.smsc.submissions
	s.smsc.mu.Unlock()
	s.sink.arrivedMu.Lock()
	defer s.sink.arrivedMu.Unlock()
	for _, a := range s.sink.arrived {
		n += a.times
	}
	return n
}

// halted reports whether /readyz of a gateway says that processing has stopped.
func (g *gateway) halted(ctx context.Context) bool {
	_, text := servers.Get(ctx, "http://"+g.addr+"/readyz")
	return strings.Contains(string(text), "Processing has stopped")
}

// recover runs `penstock recover` for each halted gateway and waits until all gateways are ready.
func (s *site) recover(ctx context.Context) error {
	for _, g := range s.gateways {
		if !g.halted(ctx) {
			continue
		}
		cmd := exec.CommandContext(ctx, g.binary, "recover")
		cmd.Env = append(os.Environ(), g.env...)
		if output, err := cmd.CombinedOutput(); err != nil && g.halted(ctx) { // another gateway's recovery may have resumed g
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

// withNewDevices calls do while devices that do not exist yet send readings.
func (s *site) withNewDevices(ctx context.Context, do func() error) error {
	firstDevice := s.restores * newDevices
	s.restores++
	var sent [newDevices]int
	return during(newDevices, 100*time.Millisecond, func(worker int) {
		device := firstDevice + worker
		r := s.reading(newDeviceKind, device%devicesEach+devicesEach*(1000*(device/devicesEach)+sent[worker]))
		sent[worker]++
		s.postReading(ctx, r, genericPath, r.genericBody())
	}, do)
}
