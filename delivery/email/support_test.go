package email

import (
	"context"
	"net"
	"testing"
)

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.From == "" {
		o.From = "Gateway <gateway@penstock.test>"
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func counted(dials *int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}
