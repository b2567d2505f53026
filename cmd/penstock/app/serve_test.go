package app

import (
	"net"
	"strings"
	"testing"
	"time"
)

// A connection that never sent a byte does not keep the program from ending.
func TestSilentConnectionsDoNotHoldUpTheEnd(t *testing.T) {
	g := start(t, &site{name: "embedded"}, `{"accounts": []}`)
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url(), "http://"))
		must(t, err)
		defer conn.Close()
	}
	g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)
	began := time.Now()
	must(t, g.stop())
	if took := time.Since(began); took > drainTime/2 {
		t.Errorf("it took %s", took)
	}
}
