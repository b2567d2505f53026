package httpout

import (
	"bufio"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// respondToAll responds to every request with 200 and two octets. It parses no requests.
func respondToAll(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(line) == "" {
			if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")); err != nil {
				return
			}
		}
	}
}

// BenchmarkDo makes the GETs of a relay, 32 per processor at a time, to a sink in the process.
func BenchmarkDo(b *testing.B) {
	url := serveConn(b, respondToAll) + "/in?m=Hello+world&o=447700900123&d=447860000001"
	c, err := New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	relaytest.NoError(b, err)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(b.Context(), outbox.Request{Method: "GET", URL: url}); err != nil {
				b.Error(err)
			}
		}
	})
}
