package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/penstock/penstock/deploy/servers"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestAProxyPassesBytesAccordingToItsCondition sends bytes through a proxy to a server that echoes them.
func TestAProxyPassesBytesAccordingToItsCondition(t *testing.T) {
	server, err := servers.Listen("127.0.0.1:0", func(conn net.Conn) { _, _ = io.Copy(conn, conn); _ = conn.Close() })
	relaytest.NoError(t, err)
	defer server.Close()
	p, err := newProxy(server.Addr().String())
	relaytest.NoError(t, err)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.addr)
		relaytest.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	echo := func(conn net.Conn) error {
		if _, err := conn.Write([]byte{7}); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	expectEcho := func(label string) net.Conn {
		t.Helper()
		conn := dial()
		if err := echo(conn); err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		return conn
	}
	conn := expectEcho("before any condition")
	p.begin(cut)
	if echo(conn) == nil || echo(dial()) == nil {
		t.Error("a byte passed a proxy that is cut")
	}
	p.heal()
	conn = expectEcho("after heal")
	p.begin(delayed)
	if err := echo(conn); err != nil {
		t.Errorf("a byte did not pass a delayed proxy: %v", err)
	}
	p.heal()
	p.reset()
	if echo(conn) == nil {
		t.Error("a byte passed a connection after its reset")
	}
	expectEcho("after a reset")
}
