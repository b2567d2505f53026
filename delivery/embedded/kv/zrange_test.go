package kv

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
)

func TestZRANGEBYSCOREAnswersAsTheEngineDoes(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	c := client(t, s)
	do(t, c, "ZADD", "z", 1, "a", 2, "b", 2, "aa", "3.5", "c", "-inf", "low", "+inf", "high", -1, "neg")
	do(t, c, "SET", "s", 1)
	ask := func(resp3 bool, f func(p *server.Peer)) string {
		var b bytes.Buffer
		p := server.NewPeer(bufio.NewWriter(&b))
		p.Resp3 = resp3
		s.mu.Lock()
		f(p)
		s.mu.Unlock()
		p.Flush()
		return b.String()
	}
	bounds := []string{"-inf", "+inf", "inf", "1", "(1", "2", "(2", "3.5", "-1", "(", "x", ""}
	tails := []string{"", "WITHSCORES", "LIMIT 0 2", "LIMIT 1 -1", "LIMIT 9 9", "LIMIT -1 2", "LIMIT x 1", "WITHSCORES LIMIT 1 2", "LIMIT 1 2 WITHSCORES", "LIMIT 1", "BOGUS"}
	for _, key := range []string{"z", "s", "none"} {
		for _, from := range bounds {
			for _, to := range bounds {
				for _, tail := range tails {
					req := []string{"ZRANGEBYSCORE", key, from, to}
					for _, f := range fields(tail) {
						req = append(req, f.(string))
					}
					for _, resp3 := range []bool{false, true} {
						want := ask(resp3, func(p *server.Peer) { s.dispatch(p, req) })
						got := ask(resp3, func(p *server.Peer) { s.call(p, req) })
						if got != want {
							t.Errorf("%q (protocol 3: %t): got %q, want %q", req, resp3, got, want)
						}
					}
				}
			}
		}
	}
}
