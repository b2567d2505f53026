package kv

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// The benchmarks compare the store, which syncs, with a bare miniredis over its
// own listener, which keeps nothing. Each operation is one command of its kind;
// 16 connections work at a time.
//
//	go test -run '^$' -bench . ./delivery/embedded/kv
//
// One run on two cores (operations of the store per operation of miniredis):
// HSET 0.72 (77,000 a second), HSET in pipelines 1.27 (430,000), GET 2.3
// (235,000), a script of three calls 0.80 (6,500), nothing due among 50,000 17.
func targets(b *testing.B) map[string]*redis.Client {
	s := open(b, b.TempDir(), Options{})
	bare := miniredis.RunT(b)
	return map[string]*redis.Client{
		"embedded": redis.NewClient(&redis.Options{Dialer: s.Dial, PoolSize: 16}),
		"miniredis": redis.NewClient(&redis.Options{PoolSize: 16, Dialer: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("tcp", bare.Addr())
		}}),
	}
}

func run(b *testing.B, op func(c *redis.Client, i string) error) {
	for _, name := range []string{"embedded", "miniredis"} {
		b.Run(name, func(b *testing.B) {
			c := targets(b)[name]
			defer c.Close()
			b.SetParallelism(8) // 16 goroutines on two cores
			b.ReportAllocs()
			var next atomic.Int64
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := op(c, strconv.FormatInt(next.Add(1)%10_000, 10)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkHSET(b *testing.B) {
	run(b, func(c *redis.Client, i string) error {
		return c.HSet(b.Context(), "h:"+i, "state", "waiting", "at", i).Err()
	})
}

// BenchmarkHSETInPipelines counts one operation per pipeline of 500.
func BenchmarkHSETInPipelines(b *testing.B) {
	run(b, func(c *redis.Client, i string) error {
		p := c.Pipeline()
		for j := range 500 {
			p.HSet(b.Context(), "h:"+i+":"+strconv.Itoa(j%20), "state", "waiting", "at", i)
		}
		_, err := p.Exec(b.Context())
		return err
	})
}

func BenchmarkGET(b *testing.B) {
	run(b, func(c *redis.Client, i string) error {
		if err := c.Get(b.Context(), "k:"+i).Err(); err != redis.Nil {
			return err
		}
		return nil
	})
}

func BenchmarkScript(b *testing.B) {
	script := redis.NewScript(`redis.call("HSET", KEYS[1], "state", ARGV[1]) redis.call("ZADD", KEYS[2], ARGV[2], KEYS[1]) return redis.call("HGET", KEYS[1], "state")`)
	run(b, func(c *redis.Client, i string) error {
		return script.Run(b.Context(), c, []string{"h:" + i, "due"}, "waiting", i).Err()
	})
}

func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir, Options{})
	p := client(b, s).Pipeline()
	for i := range 50_000 {
		p.HSet(b.Context(), "h:"+strconv.Itoa(i), "state", "waiting", "at", i, "payload", "0123456789012345678901234567890123456789")
	}
	if _, err := p.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
	closeStore(b, s)
	for b.Loop() {
		closeStore(b, open(b, dir, Options{}))
	}
}

// BenchmarkDue looks for what is due in a set of 50,000 of which nothing is.
func BenchmarkDue(b *testing.B) {
	for _, name := range []string{"embedded", "miniredis"} {
		b.Run(name, func(b *testing.B) {
			c := targets(b)[name]
			defer c.Close()
			p := c.Pipeline()
			for i := range 50_000 {
				p.ZAdd(b.Context(), "due", redis.Z{Score: float64(1_000_000 + i*7919%50_000), Member: "delivery:" + strconv.Itoa(i)})
			}
			if _, err := p.Exec(b.Context()); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := c.ZRangeArgs(b.Context(), redis.ZRangeArgs{Key: "due", Start: "-inf", Stop: "1000", ByScore: true, Count: 100}).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompaction takes a store of 50,000 hashes; what else runs meanwhile
// waits only while a part of it is saved.
func BenchmarkCompaction(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	p := client(b, s).Pipeline()
	for i := range 50_000 {
		p.HSet(b.Context(), "h:"+strconv.Itoa(i), "state", "waiting", "at", i, "payload", "0123456789012345678901234567890123456789")
	}
	if _, err := p.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.compact(); err != nil {
			b.Fatal(err)
		}
	}
}
