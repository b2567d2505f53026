package main

import (
	"context"
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

// restartAll restarts the gateways one after the other, as an operator does: it takes a gateway
// out of the balancer, restarts it, and puts it back once it is ready.
func (s *site) restartAll(ctx context.Context, _ time.Duration) error {
	return s.withProbes(ctx, func() error {
		for _, g := range s.gateways {
			if err := s.restart(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *site) restart(ctx context.Context, g *gateway) error {
	g.balanced.Lock() // waits for the answers to requests of the balancer
	defer g.balanced.Unlock()
	if code := g.end(syscall.SIGTERM); code != 0 {
		s.note(fmt.Sprintf("%s exited with code %d", g.name, code))
	}
	return s.startGateway(ctx, g)
}

// probers is the number of concurrent requests through the balancer.
const probers = 4

// withProbes calls do while probers send readings through a balancer. Every failed request is
// noted as a failure of the run.
func (s *site) withProbes(ctx context.Context, do func() error) error {
	balancer := &http.Client{Timeout: s.client.Timeout, Transport: &http.Transport{MaxIdleConnsPerHost: probers}}
	defer balancer.CloseIdleConnections()
	return during(probers, 0, func(int) {
		if a := s.probe(ctx, balancer, int(s.probes.Add(1)-1)); !a.ok() && ctx.Err() == nil {
			s.note(fmt.Sprintf("a request through the balancer failed: %s answered %d: %.300s", a.request, a.status, a.body))
		}
	}, do)
}

// probe posts a reading once, to the next gateway that is in the balancer.
func (s *site) probe(ctx context.Context, balancer *http.Client, n int) (a answer) {
	r := s.reading(probeKind, n)
	s.ledger.offer(r.kind, r.id())
	for i := range s.gateways {
		g := s.gateways[(n+i)%len(s.gateways)]
		if !g.balanced.TryRLock() {
			continue
		}
		a, _ = request(ctx, balancer, g, http.MethodPost, genericPath, r.genericBody())
		g.balanced.RUnlock()
		break
	}
	if a.ok() {
		s.ledger.ack(r.kind, r.id(), "")
	}
	return a
}

// startCopy starts a process on a copy of a gateway's data directory. The process must exit with
// an error that names the gateway.
func (s *site) startCopy(ctx context.Context, _ time.Duration) error {
	g, addr, dir := s.gateway(), servers.FreeAddr(), filepath.Join(s.run.Dir, "copy")
	defer func() { _ = os.RemoveAll(dir) }()
	_ = exec.CommandContext(ctx, "cp", "-a", g.dir, dir).Run() // files may be deleted meanwhile
	env := append(slices.Clone(g.env), "PENSTOCK_LISTEN="+addr, "PENSTOCK_INTERNAL_URL=http://"+addr, "PENSTOCK_DATA_DIR="+dir)
	cmd, err := s.run.Start(ctx, "copy", env, g.binary, "serve", "--config", g.config)
	if err != nil {
		return err
	}
	timeout := time.AfterFunc(servers.StartTime, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	err = cmd.Wait()
	if text := servers.OutputTail(cmd); err == nil || !strings.Contains(text, "another process works as gateway") || !strings.Contains(text, g.addr) {
		s.note(fmt.Sprintf("a process on a copy of the data of %s exited (%v) without naming it: %s", g.name, err, text))
	}
	return nil
}
