// Package guardtest lists the targets to which no connection may be made, for the tests
// of all clients, and counts the connections that are made.
package guardtest

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// Addresses returns literal addresses that are not public, by their description.
func Addresses() map[string]string {
	return map[string]string{
		"loopback": "127.0.0.1", "loopback's far end": "127.255.255.254", "loopback v6": "::1",
		"private 10": "10.0.0.5", "private 172.16": "172.16.0.1", "private 172.31": "172.31.255.255", "private 192.168": "192.168.1.1",
		"unspecified": "0.0.0.0", "this network": "0.1.2.3", "unspecified v6": "::",
		"link-local": "169.254.1.1", "cloud metadata": "169.254.169.254", "container credentials": "169.254.170.2", "link-local v6": "fe80::1", "link-local v6 with a zone": "fe80::1%lo",
		"carrier-grade NAT": "100.64.0.1", "carrier-grade NAT's end": "100.127.255.255", "Alibaba metadata": "100.100.100.200",
		"Azure's wire server": "168.63.129.16", "Oracle metadata": "192.0.0.192", "EC2 metadata v6": "fd00:ec2::254", "Google metadata v6": "fd20:ce::254",
		"multicast": "224.0.0.1", "multicast's end": "239.255.255.255", "multicast v6": "ff02::1", "reserved": "240.0.0.1", "broadcast": "255.255.255.255",
		"documentation 1": "192.0.2.1", "documentation 2": "198.51.100.1", "documentation 3": "203.0.113.1", "documentation v6": "2001:db8::1", "documentation v6 new": "3fff::1",
		"benchmarks": "198.18.0.1", "benchmarks' end": "198.19.255.255", "benchmarks v6": "2001:2::1", "IETF assignments": "192.0.0.8", "6to4 relay": "192.88.99.1", "AS112": "192.31.196.1", "AMT": "192.52.193.1", "AS112 direct": "192.175.48.1",
		"mapped loopback": "::ffff:127.0.0.1", "mapped private": "::ffff:10.0.0.1", "mapped metadata": "::ffff:169.254.169.254", "mapped in hex": "::ffff:a9fe:a9fe", "mapped unspecified": "::ffff:0.0.0.0",
		"compatible loopback": "::127.0.0.1", "compatible private": "::10.0.0.1", "translated": "::ffff:0:127.0.0.1",
		"NAT64 loopback": "64:ff9b::127.0.0.1", "NAT64 metadata": "64:ff9b::a9fe:a9fe", "NAT64 private": "64:ff9b::10.0.0.1", "NAT64 local use": "64:ff9b:1::10.0.0.1",
		"6to4 loopback": "2002:7f00:1::", "6to4 private": "2002:a00:1::1", "6to4 metadata": "2002:a9fe:a9fe::1",
		"Teredo": "2001::1", "Teredo with private": "2001:0:4136:e378:8000:63bf:f5ff:fffe", "ORCHID": "2001:20::1",
		"unique local": "fc00::1", "unique local fd": "fd12:3456:789a::1", "site-local": "fec0::1", "discard only": "100::1", "segment routing": "5f00::1", "AS112 v6": "2620:4f:8000::1",
	}
}

// Names returns host names that resolve to this machine: by resolvers that parse IPv4
// like inet_aton, and by the hosts file.
func Names() map[string]string {
	return map[string]string{
		"decimal": "2130706433", "octal": "0177.0.0.1", "octal in one part": "017700000001", "hex": "0x7f.0.0.1", "hex in one part": "0x7f000001",
		"two parts": "127.1", "three parts": "127.0.1", "zero": "0", "a trailing dot": "127.0.0.1.",
		"localhost": "localhost", "localhost with a dot": "localhost.", "localhost in capitals": "LOCALHOST",
	}
}

// Refuse calls try in a subtest for each address and name, with a port, and fails if a
// connection arrives. literal reports whether the host is an address. An address must be
// refused as not public; a name may also fail to resolve.
func Refuse(t *testing.T, try func(t *testing.T, host, port string, literal bool)) {
	t.Helper()
	if n := len(Addresses()) + len(Names()); n < 60 {
		t.Fatalf("%d vectors, want at least 60", n)
	}
	port, hits := Listen(t)
	run := func(t *testing.T, name, host string, literal bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, host, port, literal)
		})
	}
	t.Run("vectors", func(t *testing.T) { // ends when all of its parallel subtests have
		for name, addr := range Addresses() {
			run(t, name, addr, true)
		}
		for name, host := range Names() {
			run(t, "name: "+name, host, false)
		}
	})
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived, want none", n)
	}
}

// Listen listens on every address of the machine and counts connections.
func Listen(t testing.TB) (port string, hits *atomic.Int64) {
	t.Helper()
	l := relaytest.Must(net.Listen("tcp", ":0"))(t)
	t.Cleanup(func() { l.Close() })
	hits = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, hits
}
