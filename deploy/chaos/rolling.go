package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// rollingFaults are those of sites with several gateways: restarts of all, one after the
// other, while a balancer in front of them must not fail a request, and a copy of one.
func (s *site) rollingFaults() []fault {
	if len(s.gateways) == 1 {
		return nil // nobody takes over, and no database is shared
	}
	return []fault{{"all gateways are restarted one by one", s.renewAll}, {"a gateway is started on a copy of another's data", s.copied}}
}

// upgrade is the first fault of a run whose gateways were started as the previous
// version. It strikes once: migrations of the database go forward only.
func (s *site) upgrade() (f fault, ok bool) {
	return fault{"all gateways are upgraded one by one", s.renewAll}, s.settings.firstBinary(s.kind) != s.settings.binary
}

// firstBinary is the program that gateways are started with.
func (o *settings) firstBinary(k backendKind) string {
	if k.gateways == 1 {
		return o.binary
	}
	return cmp.Or(o.previous, o.binary)
}

// renewAll restarts all gateways with the program that is tested.
func (s *site) renewAll(ctx context.Context, _ time.Duration) error {
	return s.unnoticed(ctx, func() error { return s.roll(ctx, s.settings.binary) })
}

// roll restarts each gateway with a program.
func (s *site) roll(ctx context.Context, binary string) error {
	for _, g := range s.gateways {
		if err := s.renew(ctx, g, binary); err != nil {
			return err
		}
	}
	return nil
}

// renew does what an operator does: takes a gateway out of the balancer, stops it,
// and puts it back once it is ready.
func (s *site) renew(ctx context.Context, g *gateway, binary string) error {
	g.balanced.Lock() // once everything that the balancer has asked is answered
	defer g.balanced.Unlock()
	if code := g.end(syscall.SIGTERM); code != 0 {
		s.note(fmt.Sprintf("%s ended with the exit code %d", g.name, code))
	}
	g.binary = binary
	return s.startGateway(ctx, g)
}

// probers is how many requests at once the balancer has.
const probers = 4

// unnoticed does something while probers send frames through a balancer, and notes
// every request that failed.
func (s *site) unnoticed(ctx context.Context, do func() error) error {
	balancer := &http.Client{Timeout: s.client.Timeout, Transport: &http.Transport{MaxIdleConnsPerHost: probers}}
	defer balancer.CloseIdleConnections()
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range probers {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if a := s.probe(ctx, balancer, int(s.probes.Add(1)-1)); !a.done() && ctx.Err() == nil {
					s.note(fmt.Sprintf("a request through the balancer failed: %s: %d %.300s", a.of, a.status, a.body))
				}
			}
		})
	}
	err := do()
	close(ended)
	all.Wait()
	return err
}

// probe posts a reading to the next gateway that is in the balancer. No request is
// repeated.
func (s *site) probe(ctx context.Context, balancer *http.Client, n int) (a answer) {
	device, at := s.reading(ofProbes, n)
	body := fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, device, n, at.Format(time.RFC3339))
	for i := range s.gateways {
		g := s.gateways[(n+i)%len(s.gateways)]
		if !g.balanced.TryRLock() {
			continue
		}
		a, _ = ask(ctx, balancer, g, http.MethodPost, "/webhooks/generic?decoder_id=sent", body)
		g.balanced.RUnlock()
		break
	}
	if a.done() {
		s.ledger.readings[ofProbes].mark(n, acked)
	}
	return a
}

// copied starts a process on a copy of a gateway's data directory. It must end and name
// the gateway.
func (s *site) copied(ctx context.Context, _ time.Duration) error {
	g, addr, dir := s.gateway(), servers.FreeAddr(), filepath.Join(s.run.Dir, "copy")
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.CommandContext(ctx, "cp", "-a", g.dir, dir).CombinedOutput(); err != nil && !vanished(out) {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	env := append(slices.Clone(g.env), "PENSTOCK_LISTEN="+addr, "PENSTOCK_INTERNAL_URL=http://"+addr, "PENSTOCK_DATA_DIR="+dir)
	cmd, err := s.run.Start(ctx, "copy", env, g.binary, "serve", "--config", g.config)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(servers.StartTime):
		_ = cmd.Process.Kill()
		<-ended
		s.note(fmt.Sprintf("a process works on a copy of the data of %s: %s", g.name, servers.Said(cmd)))
		return nil
	}
	if said := servers.Said(cmd); err == nil || !strings.Contains(said, "another process works as gateway") || !strings.Contains(said, g.addr) {
		s.note(fmt.Sprintf("a process on a copy of the data of %s ended (%v) without naming it: %s", g.name, err, said))
	}
	return nil
}

// vanished reports whether files went away while they were copied, and nothing else went
// wrong.
func vanished(out []byte) bool {
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, []byte("No such file or directory")) {
			return false
		}
	}
	return true
}
