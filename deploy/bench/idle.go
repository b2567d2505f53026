package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	idleFor = 30 * time.Second // until memory is looked at

	aimStart  = 300 * time.Millisecond
	aimIdle   = 70 << 20
	aimBinary = 66_000_000
	aimUsed   = 0.3 // percent of a core
)

// idleResult is a gateway for which nothing is configured, in an empty directory.
type idleResult struct {
	starts   []time.Duration // from the start of the process until it is ready
	cpu      []time.Duration // used by then
	resident int64           // once it has been idle for a while
	used     float64         // percent of a core while it is idle
	binary   int64           // bytes of the program
}

// measureIdle measures the start of such gateways, and the memory of the last one.
func measureIdle(ctx context.Context, p *peers, s settings, r *report) error {
	info, err := os.Stat(s.binary)
	if err != nil {
		return err
	}
	found := &idleResult{binary: info.Size()}
	for n := range s.rounds {
		cmd, took, err := p.startEmpty(ctx, s, filepath.Join(p.Dir, "idle"+strconv.Itoa(n)))
		if err != nil {
			return err
		}
		found.starts, found.cpu = append(found.starts, took), append(found.cpu, cpu(cmd.Process.Pid))
		if n == s.rounds-1 {
			before := cpu(cmd.Process.Pid)
			sleep(ctx, idleFor)
			found.used = 100 * (cpu(cmd.Process.Pid) - before).Seconds() / idleFor.Seconds()
			found.resident = resident(cmd.Process.Pid)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	r.idle = found
	return nil
}

// startEmpty starts a gateway and returns how long it took until it was ready.
func (p *peers) startEmpty(ctx context.Context, s settings, dir string) (*exec.Cmd, time.Duration, error) {
	addr, start := servers.FreeAddr(), time.Now()
	cmd, err := p.Start(ctx, "idle", []string{"PENSTOCK_LISTEN=" + addr, "PENSTOCK_DATA_DIR=" + dir}, s.binary, "serve")
	if err != nil {
		return nil, 0, err
	}
	err = servers.UntilEvery(ctx, 2*time.Millisecond, servers.StartTime, "the gateway ready", func() bool {
		status, _ := servers.Get(ctx, "http://"+addr+"/readyz")
		return status == http.StatusOK
	})
	return cmd, time.Since(start), servers.Explain(cmd, err)
}

func (r *report) printIdle(say func(format string, args ...any)) {
	i := r.idle
	if i == nil {
		return
	}
	ms := func(all []time.Duration) time.Duration {
		return time.Duration(median(all, func(d time.Duration) float64 { return float64(d) })).Round(time.Millisecond)
	}
	say("embedded and empty: ready after %v (aim %v), %v of CPU, medians of %d; resident after %v idle: %d MiB (aim ≤ %d), %.2f %% of a core (aim ≤ %.1f); the program has %.1f MB (aim ≤ %d)\n",
		ms(i.starts), aimStart, ms(i.cpu), len(i.starts), idleFor, i.resident>>20, aimIdle>>20, i.used, aimUsed, float64(i.binary)/1e6, aimBinary/1_000_000)
}
