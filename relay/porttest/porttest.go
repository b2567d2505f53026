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

// Free returns a free TCP port of the loopback interface, which stays reserved until this
// process ends, also while its server is stopped: the UDP port of the same number is the
// lock that the other processes of a test run see.
func Free(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := first + rand.IntN(count)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		lock, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			_ = lock.Close()
			continue
		}
		_ = l.Close()
		reserved.Store(port, lock)
		return port
	}
	t.Fatal("no free port")
	return 0
}

// reserved has the locks of the ports that were returned: a lock without a reference
// would be closed by the garbage collector.
var reserved sync.Map

// Address returns 127.0.0.1 with a free port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(t)))
}
