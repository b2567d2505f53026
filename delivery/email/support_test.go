package email

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.From == "" {
		o.From = "Gateway <gateway@penstock.test>"
	}
	c := relaytest.Must(New(o))(t)
	t.Cleanup(c.Close)
	return c
}

// expectReply compares the status and a part of the response.
func expectReply(t *testing.T, label string, r Result, status int, text string) {
	t.Helper()
	if r.Status != status || !strings.Contains(r.Response, text) {
		t.Errorf("%s: the reply is %d %q, want %d with %q", label, r.Status, r.Response, status, text)
	}
}

// countDials returns a function that dials and increments dials.
func countDials(dials *int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}
