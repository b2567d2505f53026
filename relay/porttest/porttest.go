// Package porttest reserves ports for servers that tests start as processes.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The ports are below 32768, so that another process is unlikely to take one before the server starts:
// systems assign ports to outgoing connections and to listeners without a port from 32768 on.
const firstPort, portCount = 10_000, 20_000

// Free returns a free TCP port of the loopback interface. The port stays reserved until this process
// ends, even while its server is stopped: the UDP port with the same number is a lock among the
// processes of a test run.
func Free(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := firstPort + rand.IntN(portCount)
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
		portLocks.Store(port, lock)
		return port
	}
	t.Fatal("no free port")
	return 0
}

// portLocks has the locks of the reserved ports. The garbage collector would close a lock without a
// reference.
var portLocks sync.Map

// Address returns 127.0.0.1 with a free port.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(t)))
}
