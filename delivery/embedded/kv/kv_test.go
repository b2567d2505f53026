package kv

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2030, 5, 6, 7, 8, 9, 123_456_000, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func open(t testing.TB, dir string, o Options) *Server {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func closeStore(t testing.TB, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func client(t testing.TB, s *Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Dialer: s.Dial, PoolSize: 20})
	t.Cleanup(func() { c.Close() })
	return c
}

func do(t testing.TB, c *redis.Client, args ...any) any {
	t.Helper()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// state is everything that a store holds, in a form that can be compared.
type state struct {
	Types     map[string]string
	Strings   map[string]string
	Hashes    map[string]map[string]string
	Lists     map[string][]string
	Sets      map[string]map[string]struct{}
	Zsets     map[string]map[string]float64
	Streams   map[string]streamState
	Deadlines map[string]int64
}

type streamState struct {
	Entries [][]string
	Last    string
}

func stateOf(s *Server) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables
	st := state{
		Types: maps.Clone(*t.types), Strings: maps.Clone(*t.strings), Hashes: map[string]map[string]string{},
		Lists: map[string][]string{}, Sets: map[string]map[string]struct{}{}, Zsets: map[string]map[string]float64{},
		Streams: map[string]streamState{}, Deadlines: maps.Clone(s.expiry.at),
	}
	for k, v := range *t.hashes {
		st.Hashes[k] = maps.Clone(v)
	}
	for k, v := range *t.lists {
		st.Lists[k] = append([]string(nil), v...)
	}
	for k, v := range *t.sets {
		st.Sets[k] = maps.Clone(v)
	}
	for k, v := range *t.zsets {
		st.Zsets[k] = maps.Clone(v)
	}
	for k, v := range *t.streams {
		ss := streamState{Last: v.lastAllocatedID}
		for _, e := range v.entries {
			ss.Entries = append(ss.Entries, append([]string{e.ID}, e.Values...))
		}
		st.Streams[k] = ss
	}
	return st
}
