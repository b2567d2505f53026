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

// gateway is a process of the program under test, which faults kill and start again on its data.
type gateway struct {
	name, addr, dir string
	run             *servers.Run
	binary          string
	env             []string
	config          string
	note            func(text string)

	disk *disk // nil if the data is on a shared file system
	// balanced is read-locked by each request through the balancer. The balancer skips a gateway
	// whose balanced is write-locked.
	balanced sync.RWMutex

	mu       sync.Mutex
	cmd      *exec.Cmd
	exited   chan struct{} // closed when the process has exited
	stopping atomic.Bool   // end has been called
}

// launch starts the process.
func (g *gateway) launch(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping.Store(false)
	cmd, err := g.run.Start(ctx, g.name, g.env, g.binary, "serve", "--config", g.config)
	if err != nil {
		return err
	}
	g.cmd, g.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		err := cmd.Wait()
		if !g.stopping.Load() && ctx.Err() == nil {
			g.note(fmt.Sprintf("%s exited by itself (%v): %s", g.name, err, servers.OutputTail(cmd)))
		}
		close(exited)
	}(g.exited)
	return nil
}

// logFile returns the name of the file with the output of the process.
func (g *gateway) logFile() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f, ok := g.cmd.Stdout.(*os.File); ok {
		return f.Name()
	}
	return ""
}

// ready waits until /readyz answers 200, which means that all back ends work.
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

// status returns the status of the answer to a GET, or 0 without an answer.
func (g *gateway) status(ctx context.Context, path string) int {
	status, _ := servers.Get(ctx, "http://"+g.addr+path)
	return status
}

// end ends the process with a signal, waits for it and returns its exit code. It returns 0 if the
// process was never started.
func (g *gateway) end(signal syscall.Signal) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return 0
	}
	g.stopping.Store(true)
	_ = g.cmd.Process.Signal(signal)
	<-g.exited
	return g.cmd.ProcessState.ExitCode()
}

// signal sends a signal that does not end the process.
func (g *gateway) signal(signal syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.cmd.Process.Signal(signal)
}
