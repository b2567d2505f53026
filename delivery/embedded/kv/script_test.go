package kv

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// effects of scripts: what they leave behind must be there after a restart.
func TestScripts(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		keys         []string
		args         []any
		want         any // the reply, or a part of the error when it is an error
	}{
		{"a relative expiry keeps its moment", `redis.call("SET", KEYS[1], "v", "EX", 30) redis.call("PEXPIRE", KEYS[1], 12345) return redis.call("PTTL", KEYS[1])`, []string{"k"}, nil, int64(12345)},
		{"a script reads what it wrote", `redis.call("HSET", KEYS[1], "a", ARGV[1]) return redis.call("HGET", KEYS[1], "a")`, []string{"h"}, []any{"x"}, "x"},
		{"the time is that of the record", `return redis.call("TIME")`, nil, nil, []any{"1904281689", "123456"}},
		{"json comes and goes", `local d = cjson.decode(ARGV[1]) d.n = d.n + 1 redis.call("SET", KEYS[1], cjson.encode(d)) return d.n`, []string{"j"}, []any{`{"n":1}`}, int64(2)},
		{"a digest is computed", `return redis.sha1hex("abc")`, nil, nil, "a9993e364706816aba3e25717850c26c9cd0d89d"},
		{"an error reply reaches the client", `redis.call("SET", KEYS[1], "kept") return redis.error_reply("STATE not eligible")`, []string{"e"}, nil, redisError("STATE not eligible")},
		{"a status reply reaches the client", `return redis.status_reply("FINE")`, nil, nil, "FINE"},
		{"an error of a call ends the script and keeps what was done", `redis.call("SET", KEYS[1], "v") redis.call("LPUSH", KEYS[1], "x") redis.call("SET", KEYS[1], "never") return 1`, []string{"w"}, nil, redisError("WRONGTYPE")},
		{"pcall gives the error to the script", `redis.call("SET", KEYS[1], "v") local r = redis.pcall("LPUSH", KEYS[1], "x") return r.err and "caught"`, []string{"w2"}, nil, "caught"},
		{"identifiers of a stream are those of the record's time", `return redis.call("XADD", KEYS[1], "*", "a", "1")`, []string{"s"}, nil, "1904281689123-0"},
		{"a nested write without effect is not one", `return redis.call("DEL", "nothing")`, nil, nil, int64(0)},
		{"a refused command is refused in a script too", `return redis.call("SPOP", KEYS[1])`, []string{"s"}, nil, redisError("embedded store")},
		{"a script cannot change its connection", `return redis.call("SELECT", "0")`, nil, nil, redisError("not allowed from script")},
		{"a null becomes false", `return redis.call("GET", "nothing") == false and 1`, nil, nil, int64(1)},
		{"a list becomes a table", `redis.call("RPUSH", KEYS[1], "a", "b") return redis.call("LRANGE", KEYS[1], 0, -1)`, []string{"l"}, nil, []any{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, clk := t.TempDir(), newClock()
			s := open(t, dir, Options{Now: clk.now})
			got, err := redis.NewScript(tc.script).Run(context.Background(), client(t, s), tc.keys, tc.args...).Result()
			if part, ok := tc.want.(redisError); ok {
				if err == nil || !strings.Contains(err.Error(), string(part)) {
					t.Fatalf("got %v, want an error with %q", err, part)
				}
			} else if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Fatalf("got %#v, %v; want %#v", got, err, tc.want)
			}
			before := stateOf(s)
			closeStore(t, s)
			clk.add(time.Minute)
			sameState(t, before, stateOf(open(t, dir, Options{Now: clk.now})))
		})
	}
}

type redisError string

func TestAScriptIsOneRecordOfItsEffects(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	c := client(t, s)
	err := c.Eval(context.Background(), `for i = 1, 3 do redis.call("SET", "k" .. i, i) end
		redis.call("SET", "k1", "x", "NX") redis.call("GET", "k1") redis.call("ZREM", "z", "m") return 1`, nil).Err()
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	got := readRecords(t, dir, 1)
	want := [][][]string{{{"SET", "k1", "1"}, {"SET", "k2", "2"}, {"SET", "k3", "3"}}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("log holds %v, want %v", got, want)
	}
}

// readRecords returns the arguments of the writes of every record of a log.
func readRecords(t *testing.T, dir string, generation uint64) (out [][][]string) {
	t.Helper()
	l, err := readLog(dir, generation)
	if err != nil {
		t.Fatal(err)
	}
	for l.good < len(l.b) {
		_, payload, n, err := parseFrame(l.b[l.good:])
		if err != nil {
			t.Fatalf("frame at %d: %v", l.good, err)
		}
		recs, err := parseRecords(payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			var ws [][]string
			for _, w := range r.writes {
				ws = append(ws, w.args)
			}
			out = append(out, ws)
		}
		l.good += n
	}
	return out
}
