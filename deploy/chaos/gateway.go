package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/penstock/penstock/deploy/servers"
)

// gateway is a gateway that is killed and started again on its data.
type gateway struct {
	name, addr, dir string
	run             *servers.Run
	binary          string
	env             []string
	config          string
	note            func(text string)

	disk *disk // nil if it has none of its own
	// balanced is held for reading by requests of the balancer, which passes the gateway
	// over while it is held for writing.
	balanced sync.RWMutex

	mu    sync.Mutex
	cmd   *exec.Cmd
	gone  chan struct{}
	meant atomic.Bool // it is to end
}

// launch starts the process.
func (g *gateway) launch(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meant.Store(false)
	cmd, err := g.run.Start(ctx, g.name, g.env, g.binary, "serve", "--config", g.config)
	if err != nil {
		return err
	}
	g.cmd, g.gone = cmd, make(chan struct{})
	go func(gone chan struct{}) {
		err := cmd.Wait()
		if !g.meant.Load() && ctx.Err() == nil {
			g.note(fmt.Sprintf("%s ended by itself (%v): %s", g.name, err, servers.Said(cmd)))
		}
		close(gone)
	}(g.gone)
	return nil
}

// output is the file of what the process writes.
func (g *gateway) output() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f, ok := g.cmd.Stdout.(*os.File); ok {
		return f.Name()
	}
	return ""
}

// ready waits until all its back ends work.
func (g *gateway) ready(ctx context.Context) error {
	return g.explain(servers.Until(ctx, 3*servers.StartTime, g.name+" to be ready", func() bool {
		return g.status(ctx, "/readyz") == http.StatusOK
	}))
}

func (g *gateway) explain(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return servers.Explain(g.cmd, err)
}

// status is the status of the answer to a GET, 0 if there is none.
func (g *gateway) status(ctx context.Context, path string) int {
	status, _ := servers.Get(ctx, "http://"+g.addr+path)
	return status
}

// end ends the process with a signal, waits for it and returns its exit code.
func (g *gateway) end(signal syscall.Signal) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return 0
	}
	g.meant.Store(true)
	_ = g.cmd.Process.Signal(signal)
	<-g.gone
	return g.cmd.ProcessState.ExitCode()
}

// signal sends a signal that does not end it.
func (g *gateway) signal(signal syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.cmd.Process.Signal(signal)
}
