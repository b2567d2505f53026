package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// randomCall makes up a call of a write: mostly of its usual form, so that it
// has an effect, on few keys, so that types and deadlines meet.
func randomCall(r *rand.Rand, names []string) []any {
	key := func() string { return string(rune('a' + r.IntN(8))) }
	word := func() string {
		return []string{"1", "2", "-1", "3.5", "x", "y", "", "EX", "NX", "XX", "GET", "LEFT", "RIGHT", "MIN", "(1", "+inf", "*", "KEEPTTL", "BEFORE", "100", "COUNT", "MAXLEN"}[r.IntN(22)]
	}
	name := names[r.IntN(len(names))]
	usual := map[string]string{
		"SET": "k w EX 3", "SETEX": "k 2 w", "PSETEX": "k 1500 w", "EXPIRE": "k 2", "PEXPIRE": "k 900", "GETEX": "k PX 800", "HSET": "k w w", "HMSET": "k w w",
		"LINSERT": "k BEFORE w w", "LMOVE": "k k LEFT RIGHT", "LMPOP": "2 k k LEFT", "ZMPOP": "2 k k MIN", "ZADD": "k 1 w", "ZINCRBY": "k 1.5 w", "XADD": "k * w w",
		"XTRIM": "k MAXLEN 1", "XDEL": "k 1-1", "ZUNIONSTORE": "k 2 k k", "ZINTERSTORE": "k 2 k k", "LTRIM": "k 0 3", "LREM": "k 1 w", "LSET": "k 0 w", "SETBIT": "k 5 1",
		"SETRANGE": "k 2 w", "BITOP": "AND k k k", "GEOADD": "k 13.3 38.1 w", "ZREMRANGEBYSCORE": "k 1 2", "ZREMRANGEBYRANK": "k 0 0", "ZREMRANGEBYLEX": "k [a [b",
		"FLUSHALL": "", "FLUSHDB": "", "MSET": "k w k w", "MSETNX": "k w k w", "HINCRBY": "k w 2", "HINCRBYFLOAT": "k w 0.5", "RENAME": "k k", "RENAMENX": "k k",
		"RPOPLPUSH": "k k", "SMOVE": "k k w", "LPUSH": "k w w", "RPUSH": "k w w", "SADD": "k w w",
	}
	form, ok := usual[name]
	if !ok {
		form = "k w"
	}
	if r.IntN(8) == 0 {
		form = strings.Repeat("w ", r.IntN(5))
	}
	if (name == "FLUSHALL" || name == "FLUSHDB") && r.IntN(20) > 0 {
		name, form = "PERSIST", "k"
	}
	call := []any{name}
	for f := range strings.FieldsSeq(form) {
		switch f {
		case "k":
			f = key()
		case "w":
			f = word()
		}
		call = append(call, f)
	}
	return call
}

// Whatever writes are sent, in scripts, transactions or alone, the state after a
// restart is the state before, and so it is from a snapshot.
func TestRandomWritesReplayExactly(t *testing.T) {
	var names []string
	for name := range writes() {
		names = append(names, name)
	}
	slices.Sort(names)
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			dir, clk := t.TempDir(), newClock()
			o := Options{Now: clk.now, CompactBytes: 1 << 40}
			s := open(t, dir, o)
			c := client(t, s)
			ctx := context.Background()
			for range 400 {
				clk.add(time.Duration(r.IntN(400_000)) * time.Microsecond)
				switch r.IntN(4) {
				case 0:
					_ = c.Eval(ctx, `return redis.pcall(unpack(ARGV))`, nil, randomCall(r, names)...).Err()
				case 1:
					p := c.TxPipeline()
					p.Do(ctx, randomCall(r, names)...)
					p.Do(ctx, randomCall(r, names)...)
					_, _ = p.Exec(ctx)
				default:
					_ = c.Do(ctx, randomCall(r, names)...).Err()
				}
			}
			before := stateOf(s)
			closeStore(t, s)
			s = open(t, dir, o)
			sameState(t, before, stateOf(s))
			if _, err := s.compact(); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			sameState(t, before, stateOf(open(t, dir, o)))
		})
	}
}

func TestAPanicInTheEngineIsAnError(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	s.answers["BOOM"] = func(_ *server.Peer, _ []string) { s.mr.Lock(); panic("boom") }
	if got := talk(t, s, "SET a 1", "BOOM", "GET a"); got != "+OK\r\n-ERR internal error in BOOM\r\n$1\r\n1\r\n" {
		t.Fatalf("got %q", got)
	}
}

func TestKeysThatAreGoneTakeNoMemory(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	p := client(t, s).Pipeline()
	for i := range 30_000 {
		k := fmt.Sprint(i)
		p.Set(t.Context(), k, 1, time.Hour)
		p.Del(t.Context(), k)
	}
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(*s.tables.versions); n > 10_001 {
		t.Errorf("%d versions are kept", n)
	}
	if n := len(s.expiry.queue); n > 1001 {
		t.Errorf("%d deadlines are kept", n)
	}
}
