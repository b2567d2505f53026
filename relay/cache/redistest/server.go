// Package redistest provides Redis for tests: a database of a server that all tests share, or, for
// tests that stop servers, a server, a cluster, or a master with Sentinel, each in the test's own
// directory on free ports.
//
// Without an installed redis-server a test fails, or is skipped if PENSTOCK_TEST_SKIP_REAL=1.
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

// Server is a redis-server. A server of one test appends every command to disk, so that
// acknowledged writes survive Restart.
type Server struct {
	// URL is redis://127.0.0.1:<port>.
	URL  string
	Addr string

	t       testing.TB
	dir     string
	args    []string
	process *relaytest.Process
}

// Shared returns the server that tests share, without persistence. Tests cannot stop the server.
// Its address is in the environment variable PENSTOCK_TEST_REDIS.
func Shared(t testing.TB) *Server {
	t.Helper()
	addr := relaytest.Shared(t, "PENSTOCK_TEST_REDIS", func(t testing.TB) string {
		return Start(t, "--databases", "4096", "--appendonly", "no").Addr
	})
	return &Server{Addr: addr, URL: "redis://" + addr}
}

// NewDatabase returns the URL of an empty database of the server. No other test gets the database
// until this test ends. Database 0 has the numbers that are in use.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	ctx, client := context.Background(), s.Client()
	defer client.Close()
	databases := relaytest.Must(client.ConfigGet(ctx, "databases").Result())(t)["databases"]
	size := relaytest.Must(strconv.ParseInt(databases, 10, 64))(t)
	for range size {
		nextIndex := relaytest.Must(client.Incr(ctx, "next").Result())(t)
		number := 1 + nextIndex%(size-1)
		inUse := fmt.Sprintf("in use: %d", number)
		if !relaytest.Must(client.SetNX(ctx, inUse, t.Name(), 0).Result())(t) {
			continue
		}
		t.Cleanup(func() {
			rdb := s.Client() // fails if the server has stopped
			defer rdb.Close()
			_ = rdb.Del(context.Background(), inUse).Err()
		})
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, DB: int(number), Protocol: 2, DisableIdentity: true})
		defer rdb.Close()
		relaytest.NoError(t, rdb.FlushDB(ctx).Err())
		return fmt.Sprintf("%s/%d", s.URL, number)
	}
	t.Fatalf("all %s databases of Redis are in use", databases)
	return ""
}

// Start starts a server and stops it when the test ends. args are further arguments of
// redis-server.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	requireProgram(t, "redis-server")
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

// Stop kills the server, as in a crash, and waits until it has ended.
func (s *Server) Stop() {
	if s.t == nil {
		panic("a test stops the Redis that all tests share")
	}
	s.process.Kill()
}

// Restart stops the server if it runs, starts it on the same port with the same data and waits
// until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.process = relaytest.StartProcess(s.t, exec.Command("redis-server", s.args...))
	c := s.Client()
	defer c.Close()
	Await(s.t, "redis-server answers", func(ctx context.Context) bool {
		select {
		case <-s.process.Ended:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("redis-server ended: %s", text)
		default:
		}
		return c.Ping(ctx).Err() == nil
	})
}

// Pause stops the server's process, without closing connections, until resume is called.
func (s *Server) Pause() (resume func()) {
	s.t.Helper()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatalf("redis-server: pause: %v", err)
	}
	p := s.process
	return func() { _ = p.Signal(syscall.SIGCONT) }
}

// Client returns a client to inspect the stored data. The caller must close it.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
}

// Await waits until a condition holds. It fails the test after relaytest.Patience. label states
// the condition, for example "the queue is empty".
func Await(t testing.TB, label string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), relaytest.Patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("timeout after %s while waiting until %s", relaytest.Patience, label)
		case <-tick.C:
		}
	}
}

// requireProgram fails or skips the test if a program is missing.
func requireProgram(t testing.TB, name string) {
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
