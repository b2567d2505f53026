// Package porttest finds ports for the servers that tests start as processes.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The ports below those that systems give to outgoing connections and to listeners
// that request any free port (32768 and above): between the check and the start of the
// server no other process takes one by chance.
const first, count = 10_000, 20_000

var given sync.Map // ports that were returned: their servers may not listen yet

// Free returns a port of the loopback interface that is free, and that it has not
// returned before.
func Free(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := first + rand.IntN(count)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, again := given.LoadOrStore(port, true); !again {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// Address returns 127.0.0.1 with a free port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(t)))
}
