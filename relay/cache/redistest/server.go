// Package redistest starts real Redis servers for tests: one server, a cluster
// or a master under Sentinels, each in the test's own directory on free ports.
//
// A missing redis-server fails the test, unless PENSTOCK_TEST_SKIP_REAL=1 says
// that real servers are to be skipped.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// startTime bounds how long a server may take to answer.
const startTime = time.Minute

// Server is a redis-server of one test. It appends every command to disk, so
// that Restart finds what was acknowledged.
type Server struct {
	// URL is redis://127.0.0.1:<port>.
	URL  string
	Addr string

	t       testing.TB
	dir     string
	args    []string
	process *relaytest.Process
}

// Start starts a server and stops it when the test ends. args are settings as
// on redis-server's command line.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary(t, "redis-server")
	port := porttest.Free(t)
	s := &Server{t: t, dir: t.TempDir(), Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	s.URL = "redis://" + s.Addr
	s.args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--appendonly", "yes", "--save", "", "--logfile", filepath.Join(s.dir, "log"),
	}, args...)
	t.Cleanup(s.Stop)
	s.Restart()
	return s
}

// Stop kills the server, as a crash would, and waits until it is gone.
func (s *Server) Stop() { s.process.Kill() }

// Restart starts a stopped server on the same port with the same data and waits
// until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.process = relaytest.StartProcess(s.t, exec.Command("redis-server", s.args...))
	c := s.Client()
	defer c.Close()
	Await(s.t, startTime, "redis-server answers", func(ctx context.Context) bool {
		select {
		case <-s.process.Ended:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("redis-server ended: %s", text)
		default:
		}
		return c.Ping(ctx).Err() == nil
	})
}

// Pause stops the server from answering, without closing connections, until
// resume is called.
func (s *Server) Pause() (resume func()) {
	s.t.Helper()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatalf("redis-server: pause: %v", err)
	}
	p := s.process
	return func() { _ = p.Signal(syscall.SIGCONT) }
}

// Client returns a plain client, for looking at what is stored. The caller
// closes it.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
}

// Await waits until a condition holds, and fails the test if it does not in
// time.
func Await(t testing.TB, most time.Duration, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", most, what)
		case <-tick.C:
		}
	}
}

// binary fails or skips the test if a program is missing.
func binary(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	text := fmt.Sprintf("%s is not installed (Debian: apt-get install redis-server redis-sentinel)", name)
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skip(text)
	}
	t.Fatal(text)
}
