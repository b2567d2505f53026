package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/penstock/penstock/delivery/guard/guardtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// newResolver returns a resolver that answers each query for an A record with the next list of
// addresses, and further queries with the last list.
func newResolver(t *testing.T, answers ...[][4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	relaytest.NoError(t, err)
	t.Cleanup(func() { server.Close() })
	var queries atomic.Int64
	go func() {
		buf := make([]byte, 1500)
		for {
			n, client, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				for _, addr := range answers[min(int(queries.Add(1)), len(answers))-1] {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: addr},
					})
				}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(raw, client)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestANameThatResolvesToAPrivateAddressLaterIsRefused(t *testing.T) {
	port, hits := guardtest.Listen(t)
	g := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")})
	d := NewDialer(g, 5*time.Second, newResolver(t, [][4]byte{{127, 0, 0, 2}}, [][4]byte{{10, 0, 0, 5}}))
	conn := relaytest.Must(d.DialContext(t.Context(), "tcp", "example.test:"+port))(t)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("read a byte of an empty connection")
	}
	_, err := d.DialContext(t.Context(), "tcp", "example.test:"+port)
	if _, ok := errors.AsType[*Error](err); !ok || err.Error() != "address 10.0.0.5 of example.test is not public" {
		t.Errorf("error = %v, want *Error for 10.0.0.5", err)
	}
	relaytest.Equal(t, "the number of connections", hits.Load(), 1)
}

func TestOnlyAllowedAddressesOfANameAreConnected(t *testing.T) {
	port, hits := guardtest.Listen(t)
	g := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")})
	addresses := [][4]byte{{127, 0, 0, 1}, {127, 0, 0, 2}, {127, 0, 0, 3}}
	conn := relaytest.Must(NewDialer(g, 5*time.Second, newResolver(t, addresses)).DialContext(t.Context(), "tcp", "example.test:"+port))(t)
	defer conn.Close()
	relaytest.Equal(t, "the address", conn.RemoteAddr().(*net.TCPAddr).IP.String(), "127.0.0.2")
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("read a byte of an empty connection")
	}
	relaytest.Equal(t, "the number of connections", hits.Load(), 1)
}
