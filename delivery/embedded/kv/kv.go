package kv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Options of a store. The zero value works.
type Options struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Logger takes what an operator should know; slog.Default() when nil.
	Logger *slog.Logger
	// CompactBytes is the size of the log from which it is replaced by a
	// snapshot, once it is also twice the size of the last one; 64 MiB when 0.
	CompactBytes int64
	// CommitWindow is how long a commit waits for further writes to share its
	// sync with. Writes that arrive during a sync share the next one anyway, so
	// 0 is best where a sync takes less than a few milliseconds.
	CommitWindow time.Duration
}

// Stats is a look at a running store.
type Stats struct {
	Keys           int
	LogBytes       int64     // bytes to replay at the next start, without the snapshot
	LastCompaction time.Time // zero when there was none since the start
	Commands       uint64    // commands run since the start
}

// Server is the store of one directory.
type Server struct {
	dir  string
	o    Options
	lock *os.File
	wal  *wal

	// mu is held while a command runs. It guards everything up to the blank line.
	mu     sync.Mutex
	mr     *miniredis.Miniredis
	srv    *server.Server
	tables tables
	expiry *deadlines
	micros int64  // the time of the running command, since 1970
	record []byte // what the running command has written so far
	direct bool   // the next call of the hook is our own, not a script's
	inner  *server.Peer
	reply  bytes.Buffer // what inner writes to
	// discard is for commands whose reply nobody needs.
	discard *server.Peer
	subs    map[string]map[*conn]struct{}
	conns   map[*conn]struct{}
	snap    *snapshot // the snapshot in the making, or nil
	closed  bool

	writes  map[string]writeSpec
	reads   map[string]bool
	answers map[string]answer

	commands      atomic.Uint64
	compactAt     atomic.Int64
	compacting    atomic.Bool
	lastCompacted atomic.Int64
	generation    uint64 // of the log; the compaction and the start use it
	snapGen       uint64 // of the snapshot, 0 when there is none
	stop          chan struct{}
	work          sync.WaitGroup
}

const defaultCompactBytes = 64 << 20

// drainTime is how long Close lets a client take its last replies.
const drainTime = 5 * time.Second

// Open takes the directory, which is created if need be, and brings back the
// state that its log describes. It returns an error when another process has
// the directory, and when the log is damaged elsewhere than in what was being
// written at the end: then the error names the file and the offset.
func Open(dir string, o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CompactBytes <= 0 {
		o.CompactBytes = defaultCompactBytes
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		dir: dir, o: o, lock: lock, wal: newWAL(o.CommitWindow), expiry: newDeadlines(),
		subs: map[string]map[*conn]struct{}{}, conns: map[*conn]struct{}{},
		writes: writes(), reads: otherReads(), stop: make(chan struct{}),
	}
	s.answers = s.ownAnswers()
	if err = s.startEngine(); err == nil {
		err = s.recover()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.work.Go(s.expireIdle)
	s.compactIfDue()
	return s, nil
}

// startEngine starts miniredis without a listener and gets hold of what its
// scripts run on: a context that says that the lock is already held.
func (s *Server) startEngine() error {
	s.mr = miniredis.NewMiniRedis()
	c, err := s.mr.Dial()
	if err != nil {
		return fmt.Errorf("kv: start: %w", err)
	}
	c.Close()
	s.srv = s.mr.Server()
	s.inner = server.NewPeer(bufio.NewWriter(&s.reply))
	s.srv.SetPreHook(func(p *server.Peer, _ string, _ ...string) bool {
		if s.direct {
			s.direct = false
			return false
		}
		s.inner.Ctx = p.Ctx
		return false
	})
	s.dispatch(server.NewPeer(bufio.NewWriter(&bytes.Buffer{})), []string{"EVAL", "return redis.call('PING')", "0"})
	if s.inner.Ctx == nil {
		return errors.New("kv: start: this version of miniredis does not show its scripts' calls")
	}
	s.discard = server.NewPeer(bufio.NewWriter(io.Discard))
	s.discard.Ctx = s.inner.Ctx
	s.srv.SetPreHook(s.hook)
	s.tables, err = newTables(s.mr.DB(0))
	return err
}

// Dial returns a connection to the store, in memory. It fits the Dialer of
// go-redis; network and address are not used.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, srv := newPipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("kv: dial: %w", net.ErrClosed)
	}
	c := newConn(s, srv)
	s.conns[c] = struct{}{}
	s.work.Go(c.serve)
	return client, nil
}

// Stats tells how much the store holds.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	keys := len(*s.tables.types)
	s.mu.Unlock()
	st := Stats{Keys: keys, LogBytes: s.wal.bytes(), Commands: s.commands.Load()}
	if at := s.lastCompacted.Load(); at > 0 {
		st.LastCompaction = time.UnixMicro(at)
	}
	return st
}

// Close answers what has arrived, makes it durable and gives the directory back.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	for c := range s.conns {
		c.net.closeRead()
		_ = c.net.SetWriteDeadline(time.Now().Add(drainTime))
	}
	s.mu.Unlock()
	s.work.Wait()
	s.mr.Close()
	return errors.Join(s.wal.close(), s.lock.Close())
}

// expireIdle removes keys whose time has come while nobody asks for anything.
func (s *Server) expireIdle() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		if s.wal.ready() != nil {
			continue
		}
		s.mu.Lock()
		s.begin()
		s.finish()
		s.mu.Unlock()
		if err := s.wal.flush(); err != nil {
			s.o.Logger.Error("embedded store cannot write its log", "err", err)
		}
	}
}
