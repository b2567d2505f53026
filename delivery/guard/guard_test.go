package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// refused are literal addresses that no connection may be made to.
func refused() map[string]string {
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
		"mapped loopback": "::ffff:127.0.0.1", "mapped private": "::ffff:10.0.0.1", "mapped metadata": "::ffff:169.254.169.254", "mapped in hex": "::ffff:a9fe:a9fe", "mapped nothing": "::ffff:0.0.0.0",
		"compatible loopback": "::127.0.0.1", "compatible private": "::10.0.0.1", "translated": "::ffff:0:127.0.0.1",
		"NAT64 loopback": "64:ff9b::127.0.0.1", "NAT64 metadata": "64:ff9b::a9fe:a9fe", "NAT64 private": "64:ff9b::10.0.0.1", "NAT64 local use": "64:ff9b:1::10.0.0.1",
		"6to4 loopback": "2002:7f00:1::", "6to4 private": "2002:a00:1::1", "6to4 metadata": "2002:a9fe:a9fe::1",
		"Teredo": "2001::1", "Teredo with private": "2001:0:4136:e378:8000:63bf:f5ff:fffe", "ORCHID": "2001:20::1",
		"unique local": "fc00::1", "unique local fd": "fd12:3456:789a::1", "site-local": "fec0::1", "discard only": "100::1", "segment routing": "5f00::1", "AS112 v6": "2620:4f:8000::1",
	}
}

func TestNoConnectionIsMadeToAnAddressThatIsNotPublic(t *testing.T) {
	if n := len(refused()); n < 60 {
		t.Fatalf("%d vectors, want at least 60", n)
	}
	port, hits := counter(t)
	d := NewDialer(New(nil), time.Second, nil)
	for name, addr := range refused() {
		t.Run(name, func(t *testing.T) {
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(addr, port))
			if err == nil {
				conn.Close()
				t.Fatal("connected")
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("got %v, want *Error", err)
			}
			if err := New(nil).CheckURL("http://" + net.JoinHostPort(addr, port) + "/"); err == nil {
				t.Error("the URL may be saved")
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}

// counter listens on every address of the machine and counts connections.
func counter(t *testing.T) (port string, hits *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
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

func TestPublicAddressesPass(t *testing.T) {
	for _, addr := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "168.63.129.17", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4009:81f::200e"} {
		if err := New(nil).Check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestTheAllowListLetsThroughWhatItNamesAndNothingElse(t *testing.T) {
	g := New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::ffff:192.168.7.0/120"), netip.MustParsePrefix("fe80::/10")})
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd00::1": true, "fc00::1": false,
		"192.168.7.9": true, "192.168.8.1": false, "fe80::1%eth0": true, "64:ff9b::10.1.2.3": false, "127.0.0.1": false,
	} {
		if got := g.Check(netip.MustParseAddr(addr)) == nil; got != want {
			t.Errorf("%s passes: %v, want %v", addr, got, want)
		}
	}
}

func TestAnAllowedAddressIsReached(t *testing.T) {
	port, hits := counter(t)
	d := NewDialer(New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), time.Second, nil)
	conn, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("read a byte of nothing")
	}
	if hits.Load() != 1 {
		t.Errorf("%d connections, want 1", hits.Load())
	}
}

// The name is judged by what it resolves to when it is dialled, so an answer
// that changes between a check and the dial (rebinding) gains nothing.
func TestANameIsRefusedByItsAddressAndNamedInTheError(t *testing.T) {
	d := NewDialer(New(nil), time.Second, nil)
	_, err := d.DialContext(t.Context(), "tcp", "localhost:1")
	if err == nil || !strings.HasSuffix(err.Error(), " of localhost is not public") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTCPIsDialled(t *testing.T) {
	if err := New(nil).Control("udp4", "8.8.8.8:53", nil); err == nil {
		t.Error("UDP passes")
	}
	if err := New(nil).Control("tcp4", "8.8.8.8", nil); err == nil {
		t.Error("an address without a port passes")
	}
}

func TestADialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewDialer(New(nil), time.Second, nil).DialContext(ctx, "tcp", "1.1.1.1:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
