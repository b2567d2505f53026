package guard

import (
	"context"
	"errors"
	"net"
	"time"
)

// Dialer makes TCP connections that a guard has let through.
type Dialer struct {
	dialer net.Dialer
}

// NewDialer makes a dialer. The timeout bounds resolving and connecting
// together (0: only the context does). A nil resolver is the system's.
func NewDialer(g *Guard, timeout time.Duration, resolver *net.Resolver) *Dialer {
	return &Dialer{dialer: net.Dialer{Timeout: timeout, Resolver: resolver, Control: g.Control}}
}

// DialContext connects to host:port. It returns an *Error, which then names
// the host, if the first address tried is not allowed and none that is answers.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return nil, named(refused, address)
	}
	return nil, err
}

// named adds the host that was asked for, unless it was the address itself.
func named(e *Error, address string) *Error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == e.Addr.String() {
		return e
	}
	return &Error{Addr: e.Addr, Host: host}
}
