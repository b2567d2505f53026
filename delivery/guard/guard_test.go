package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/guard/guardtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestNoConnectionIsMadeToAnAddressThatIsNotPublic(t *testing.T) {
	port, hits := guardtest.Listen(t)
	d := NewDialer(New(nil), time.Second, nil)
	for name, addr := range guardtest.Addresses() {
		t.Run(name, func(t *testing.T) {
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(addr, port))
			if err == nil {
				conn.Close()
				t.Fatal("the connection was made")
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("got %v, want *Error", err)
			}
			if err := New(nil).CheckURL("http://" + net.JoinHostPort(addr, port) + "/"); err == nil {
				t.Error("CheckURL returned no error")
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived, want none", n)
	}
}

func TestPublicAddressesPass(t *testing.T) {
	for _, addr := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "168.63.129.17", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4009:81f::200e"} {
		if err := New(nil).Check(netip.MustParseAddr(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestOnlyPublicAndAllowedAddressesPass(t *testing.T) {
	g := New([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::ffff:192.168.7.0/120"), netip.MustParsePrefix("fe80::/10")})
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd00::1": true, "fc00::1": false,
		"192.168.7.9": true, "192.168.8.1": false, "fe80::1%eth0": true, "64:ff9b::10.1.2.3": false, "127.0.0.1": false,
	} {
		if got := g.Check(netip.MustParseAddr(addr)) == nil; got != want {
			t.Errorf("%s passes = %v, want %v", addr, got, want)
		}
	}
}

func TestAnAllowedAddressIsReached(t *testing.T) {
	port, hits := guardtest.Listen(t)
	d := NewDialer(New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), time.Second, nil)
	conn := relaytest.Must(d.DialContext(t.Context(), "tcp", "127.0.0.1:"+port))(t)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("read a byte of an empty connection")
	}
	relaytest.Equal(t, "the number of connections", hits.Load(), 1)
}

// A name is checked by the address to which it resolves at the dial, so a DNS response that
// changes between a check and the dial (rebinding) has no effect.
func TestANameWithAPrivateAddressIsRefused(t *testing.T) {
	d := NewDialer(New(nil), time.Second, nil)
	_, err := d.DialContext(t.Context(), "tcp", "localhost:1")
	if err == nil || !strings.HasSuffix(err.Error(), " of localhost is not public") {
		t.Errorf("error = %v, want the suffix: of localhost is not public", err)
	}
}

func TestOnlyTCPIsDialled(t *testing.T) {
	if err := New(nil).Control("udp4", "8.8.8.8:53", nil); err == nil {
		t.Error("Control allows UDP")
	}
	if err := New(nil).Control("tcp4", "8.8.8.8", nil); err == nil {
		t.Error("Control allows an address without a port")
	}
}

func TestADialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewDialer(New(nil), time.Second, nil).DialContext(ctx, "tcp", "1.1.1.1:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}
