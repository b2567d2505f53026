package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Server is a process that listens on the same address after each restart.
type Server struct {
	Cmd  *exec.Cmd
	Addr string // host:port
	Dir  string // of a PostgreSQL: the parent of its data directory

	launch func(ctx context.Context) (*exec.Cmd, error)
	ready  func(ctx context.Context) error
}

// Start starts a server that does not run, on its data, and waits until it is reachable.
func (s *Server) Start(ctx context.Context) (err error) {
	if s.Cmd, err = s.launch(ctx); err != nil {
		return err
	}
	return Explain(s.Cmd, s.ready(ctx))
}

// Kill ends the server and its children with SIGKILL, as a crash would, and waits until all of
// them have ended.
func (s *Server) Kill(ctx context.Context) error {
	pids := SignalAll(s.Cmd, syscall.SIGKILL)
	_ = s.Cmd.Wait()
	return Until(ctx, StartTime, "the children of "+s.Addr+" to end", func() bool {
		for _, pid := range pids {
			if f := Stat(pid); f != nil && f[0] != "Z" {
				return false
			}
		}
		return true
	})
}

// Redis starts a Redis with its data in a directory.
func (r *Run) Redis(ctx context.Context, dir string, args ...string) (*Server, error) {
	s := &Server{Addr: FreeAddr()}
	_, port, _ := net.SplitHostPort(s.Addr)
	args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--maxmemory-policy", "noeviction", "--save", ""}, args...)
	s.launch = func(ctx context.Context) (*exec.Cmd, error) {
		return r.Start(ctx, "redis", nil, "redis-server", args...)
	}
	s.ready = func(ctx context.Context) error { return Reachable(ctx, s.Addr) }
	return s, s.Start(ctx)
}

// Influx starts an influxd 1.8 with its data in a directory.
func (r *Run) Influx(ctx context.Context, dir string) (*Server, error) {
	s, conf := &Server{Addr: FreeAddr()}, filepath.Join(dir, "influxd.conf")
	text := fmt.Sprintf(influxText, FreeAddr(), dir, dir, dir, s.Addr)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.launch = func(ctx context.Context) (*exec.Cmd, error) {
		return r.Start(ctx, "influxd", nil, "influxd", "-config", conf)
	}
	s.ready = func(ctx context.Context) error { return Reachable(ctx, s.Addr) }
	return s, s.Start(ctx)
}

const influxText = `
reporting-disabled = true
bind-address = "%s"
[meta]
dir = "%s/meta"
[data]
dir = "%s/data"
wal-dir = "%s/wal"
query-log-enabled = false
[http]
bind-address = "%s"
log-enabled = false
flux-enabled = true
[monitor]
store-enabled = false
[logging]
level = "error"
`
