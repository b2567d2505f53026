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

// checkReply compares a status, and part of the response.
func checkReply(t *testing.T, what string, r Result, status int, text string) {
	t.Helper()
	if r.Status != status || !strings.Contains(r.Response, text) {
		t.Errorf("%s: the reply is %d %q, want %d and %q in it", what, r.Status, r.Response, status, text)
	}
}

// counted returns a function that dials and counts.
func counted(dials *int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}
