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
	dial := guard.NewDialer(guard.New(nil), 2*time.Second, nil).DialContext
	guardtest.Refuse(t, func(t *testing.T, host, port string, literal bool) {
		for _, mode := range []string{None, STARTTLS, TLS} {
			_, err := newClient(t, Options{Addr: net.JoinHostPort(host, port), TLS: mode, Dial: dial}).Send(t.Context(), newMail("a@example.test"))
			if _, refused := errors.AsType[*guard.Error](err); err == nil || literal && !refused {
				t.Errorf("%s: got the error %v, want a refusal by the guard", mode, err)
			}
		}
	})
}
