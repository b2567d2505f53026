package httpd

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestDrainClosesConnectionsWithTheirNextResponse(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	addr, conns := serveOn(t, app, nil, nil)
	conn := dial(t, addr)
	answers := bufio.NewReader(conn)
	request := func() (closes bool) {
		t.Helper()
		write(t, conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(answers, nil)
		relaytest.NoError(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status = %s, want 200", resp.Status)
		}
		_ = resp.Body.Close()
		return resp.Close
	}
	if request() {
		t.Error("the response before Drain closes the connection")
	}
	ctx, cancel := context.WithTimeout(context.Background(), relaytest.Patience)
	defer cancel()
	drained := make(chan struct{})
	go func() { conns.Drain(ctx); close(drained) }()
	for { // until the listener is closed
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = c.Close()
	}
	if !request() {
		t.Error("the response during Drain does not close the connection")
	}
	<-drained
	if ctx.Err() != nil {
		t.Error("Drain did not return after all connections were closed")
	}
}
