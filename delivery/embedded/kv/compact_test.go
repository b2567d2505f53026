package kv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// seed fills a store with keys of every type.
func seed(t *testing.T, s *Server, n int) {
	t.Helper()
	p := client(t, s).Pipeline()
	ctx := context.Background()
	for i := range n {
		k := fmt.Sprint(i)
		p.Set(ctx, "s:"+k, k, time.Duration(i%3)*time.Hour)
		p.HSet(ctx, "h:"+k, "a", k, "b", "x")
		p.RPush(ctx, "l:"+k, k, "b")
		p.SAdd(ctx, "u:"+k, k, "b")
		p.Do(ctx, "ZADD", "z:"+k, i, k, "0.1", "b")
		p.Do(ctx, "XADD", "x:"+k, fmt.Sprintf("%d-1", i+1), "a", k)
	}
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestACompactionInterruptedAnywhereLeavesTheState(t *testing.T) {
	rotate := func(t *testing.T, s *Server) fileHeader {
		generation, base, err := s.rotate()
		if err != nil {
			t.Fatal(err)
		}
		return fileHeader{snapMagic, generation, base}
	}
	snapshotOf := func(t *testing.T, s *Server, h fileHeader) {
		if _, err := s.writeSnapshot(h); err != nil {
			t.Fatal(err)
		}
	}
	tmp := func(t *testing.T, s *Server, h fileHeader, suffix string) {
		name := filepath.Join(s.dir, fileName(h.generation, suffix)+tmpSuffix)
		if err := os.WriteFile(name, []byte("half a fi"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for name, interrupt := range map[string]func(t *testing.T, s *Server){
		"while the new log is created":     func(t *testing.T, s *Server) { tmp(t, s, fileHeader{generation: s.generation + 1}, logSuffix) },
		"before the snapshot":              func(t *testing.T, s *Server) { rotate(t, s) },
		"while the snapshot is written":    func(t *testing.T, s *Server) { tmp(t, s, rotate(t, s), snapSuffix) },
		"before the old files are deleted": func(t *testing.T, s *Server) { snapshotOf(t, s, rotate(t, s)) },
		"after one that had failed":        func(t *testing.T, s *Server) { rotate(t, s); rotate(t, s) },
		"and then one more ends":           func(t *testing.T, s *Server) { rotate(t, s); snapshotOf(t, s, rotate(t, s)) },
		"between the first two deletions": func(t *testing.T, s *Server) {
			h := rotate(t, s)
			snapshotOf(t, s, h)
			os.Remove(filepath.Join(s.dir, fileName(1, logSuffix)))
		},
		"not at all":                        func(t *testing.T, s *Server) { s.compact() },
		"not at all, twice":                 func(t *testing.T, s *Server) { s.compact(); s.compact() },
		"and the store is closed meanwhile": func(t *testing.T, s *Server) { s.closed = true; s.compact(); s.closed = false },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), Options{})
			seed(t, s, 10)
			interrupt(t, s)
			c := client(t, s)
			do(t, c, "HSET", "h:1", "after", "1")
			do(t, c, "DEL", "l:2")
			want := stateOf(s)
			crashed := t.TempDir() // what is in the directory now is what kill -9 leaves
			if err := os.CopyFS(crashed, os.DirFS(s.dir)); err != nil {
				t.Fatal(err)
			}
			again := open(t, crashed, Options{})
			sameState(t, want, stateOf(again))
			do(t, client(t, again), "SET", "more", 1)
			if _, err := again.compact(); err != nil {
				t.Fatal(err)
			}
			want = stateOf(again)
			closeStore(t, again)
			sameState(t, want, stateOf(open(t, crashed, Options{})))
		})
	}
}

func TestASnapshotShowsOneMomentWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{CompactBytes: 32 << 10})
	seed(t, s, 300)
	c := client(t, s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := fmt.Sprint((i*7 + w) % 300)
				c.HIncrBy(context.Background(), "h:"+k, "n", 1)
				c.RPush(context.Background(), "l:"+k, i)
				c.Del(context.Background(), "s:"+k)
				c.Rename(context.Background(), "u:"+k, "r:"+k)
				if i%500 == 100 {
					c.FlushAll(context.Background())
				}
			}
		})
	}
	first := s.Stats().LastCompaction
	for range 3 {
		await(t, func() bool { return s.Stats().LastCompaction.After(first) })
		first = s.Stats().LastCompaction
	}
	close(stop)
	wg.Wait()
	want := stateOf(s)
	closeStore(t, s)
	sameState(t, want, stateOf(open(t, dir, Options{})))
	if snaps, _ := generations(dir, snapSuffix); len(snaps) != 1 {
		t.Fatalf("%d snapshots are left", len(snaps))
	}
}

// await waits for a condition that another goroutine brings about.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatal("it did not come about in 30 s")
		case <-tick.C:
		}
	}
}

// What a frame may hold is bounded, and what a key holds is not.
func TestALargeKeyIsSeveralFramesOfASnapshot(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{CompactBytes: 1 << 40})
	c, ctx := client(t, s), context.Background()
	const fields = 3000
	text := strings.Repeat("x", 1<<10)
	p := c.Pipeline()
	for i := range fields {
		p.HSet(ctx, "h", i, text)
		p.ZAdd(ctx, "z", redis.Z{Score: float64(i), Member: text + strconv.Itoa(i)})
	}
	p.Expire(ctx, "h", time.Hour)
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.compact(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	found, err := filepath.Glob(filepath.Join(dir, "*"+snapSuffix))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for b = b[headerSize:]; len(b) > 0; {
		_, payload, n, err := parseFrame(b)
		if err != nil || len(payload) > 3*snapshotFrame {
			t.Fatalf("a frame of %d bytes, %v", len(payload), err)
		}
		b = b[n:]
	}
	again := open(t, dir, Options{})
	c = client(t, again)
	if n, err := c.HLen(ctx, "h").Result(); err != nil || n != fields {
		t.Errorf("%d fields, %v", n, err)
	}
	if n, err := c.ZCard(ctx, "z").Result(); err != nil || n != fields {
		t.Errorf("%d members, %v", n, err)
	}
	if ttl, err := c.TTL(ctx, "h").Result(); err != nil || ttl <= 0 {
		t.Errorf("it expires in %v, %v", ttl, err)
	}
}

// The lock is held for a frame's worth, whatever sizes the keys have.
func TestASnapshotTakesNoMoreThanAFrameAtATime(t *testing.T) {
	s := open(t, t.TempDir(), Options{CompactBytes: 1 << 40})
	c, ctx := client(t, s), context.Background()
	for key, size := range map[string]int{"small": snapshotFrame - 1000, "large": 2 * snapshotFrame, "waits": 1} {
		if err := c.Set(ctx, key, strings.Repeat("x", size), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := newSnapshot(s)
	snap.save("small")
	snap.save("large")
	snap.some()
	if _, waits := snap.pending["waits"]; !waits || len(snap.frames) != 2 {
		t.Errorf("%d frames, pending %v", len(snap.frames), snap.pending)
	}
}
