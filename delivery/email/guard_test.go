package email

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/guard/guardtest"
)

// A client with the guard's dialer connects only to public servers.
func TestAGuardedClientConnectsToNoPrivateServer(t *testing.T) {
	if n := len(guardtest.Addresses()) + len(guardtest.Names()); n < 60 {
		t.Fatalf("%d vectors, want at least 60", n)
	}
	port, hits := guardtest.Listen(t)
	dial := guard.NewDialer(guard.New(nil), 2*time.Second, nil).DialContext
	try := func(name, host string, literal bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []string{None, STARTTLS, TLS} {
				_, err := newClient(t, Options{Addr: net.JoinHostPort(host, port), TLS: how, Dial: dial}).Send(t.Context(), hello("a@example.test"))
				if _, refused := errors.AsType[*guard.Error](err); err == nil || literal && !refused {
					t.Errorf("%s: got the error %v, want a refusal by the guard", how, err)
				}
			}
		})
	}
	t.Run("vectors", func(t *testing.T) {
		for name, addr := range guardtest.Addresses() {
			try(name, addr, true)
		}
		for name, host := range guardtest.Names() {
			try("name: "+name, host, false)
		}
	})
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}
