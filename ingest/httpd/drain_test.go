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
	app := New(Options{Logger: quiet()})
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString("here") })
	addr, conns := serveOn(t, app, nil, nil)
	kept := dial(t, addr)
	answers := bufio.NewReader(kept)
	ask := func() (closes bool) {
		t.Helper()
		write(t, kept, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(answers, nil)
		relaytest.NoError(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("answered %s", resp.Status)
		}
		_ = resp.Body.Close()
		return resp.Close
	}
	if ask() {
		t.Error("a connection ends although nothing drains")
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
	if !ask() {
		t.Error("the response does not say that the connection ends")
	}
	<-drained
	if ctx.Err() != nil {
		t.Error("Drain did not notice that every connection had ended")
	}
}
