package redis

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Options configures a server; the zero value works.
type Options struct {
	// MaxTasks is the number of tasks that may be enqueued before the server is replaced by
	// an empty one: miniredis keeps a counter for every key name that it has ever seen, about
	// 150 bytes a task. 0 means 1,000,000.
	MaxTasks int64
}

// Server is a Redis in memory. Its methods are safe for concurrent use.
type Server struct {
	maxTasks int64
	stop     chan struct{}
	expiry   sync.WaitGroup // the goroutine of expire

	mu     sync.Mutex
	engine *engine
	closed bool
}

type engine struct {
	*miniredis.Miniredis
	tasks atomic.Int64
}

// Start starts an empty server.
func Start(o Options) (*Server, error) {
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	s := &Server{maxTasks: cmp.Or(o.MaxTasks, 1_000_000), stop: make(chan struct{}), engine: e}
	s.expiry.Go(s.expire)
	return s, nil
}

func newEngine() (*engine, error) {
	e := &engine{Miniredis: miniredis.NewMiniRedis()}
	c, err := e.Dial() // starts miniredis without a listener
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	e.Server().SetPreHook(e.hook)
	return e, c.Close()
}

// info is the answer to INFO, which clients read when they connect.
const info = "redis_version:6.2.0\r\nredis_mode:standalone\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"

// hook answers INFO, and the scripts with which asynq looks for tasks while the queue is
// empty: running these in a Lua interpreter takes a fifth of the processor time of an idle
// gateway. hook also counts the tasks that asynq's scripts save.
func (e *engine) hook(p *server.Peer, name string, args ...string) bool {
	switch {
	case name == "INFO":
		p.WriteBulk(info)
		return true
	case name == "HSET" && len(args) > 2 && args[1] == "msg":
		e.tasks.Add(1)
	case name == "EVALSHA" && len(args) > 2:
		numKeys, key := args[1], args[2] // the first one
		isDelayed := strings.HasSuffix(key, ":scheduled") || strings.HasSuffix(key, ":retry")
		switch {
		case numKeys == "4" && strings.HasSuffix(key, ":pending") && !e.Exists(key): // the script takes a task
			p.WriteNull()
			return true
		case numKeys == "2" && isDelayed && !e.Exists(key): // the script moves due tasks
			p.WriteInt(0)
			return true
		}
	}
	return false
}

// Dial returns a connection. Dial has the type of the Dialer of go-redis and ignores network and
// address.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("embedded redis: %w", net.ErrClosed)
	}
	client, end := newPipe()
	s.engine.Server().ServeConn(end)
	return client, nil
}

// Close ends every connection and discards all data.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	e := s.engine
	s.mu.Unlock()
	s.expiry.Wait()
	e.Close()
	return nil
}

// expire advances the clock of keys that expire. miniredis then scans every key. The clock of a
// large server is advanced less often, so that the scans take about a hundredth of a processor.
// expire also replaces the server by an empty one when too many tasks were enqueued.
func (s *Server) expire() {
	lastTick, wait := time.Now(), time.Second
	for {
		select {
		case <-s.stop:
			return
		case <-time.After(wait):
		}
		s.mu.Lock()
		current := s.engine
		s.mu.Unlock()
		now := time.Now()
		current.FastForward(now.Sub(lastTick))
		wait = max(time.Second, 100*time.Since(now))
		lastTick = now
		if current.tasks.Load() < s.maxTasks {
			continue
		}
		replacement, err := newEngine()
		if err != nil {
			continue // the current server stays in use
		}
		s.mu.Lock()
		s.engine = replacement
		s.mu.Unlock()
		current.Close()
	}
}
