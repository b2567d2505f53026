package guard

import (
	"context"
	"errors"
	"net"
	"time"
)

// Dialer makes TCP connections that a guard allows.
type Dialer struct{ dialer net.Dialer }

// NewDialer returns a dialer. The timeout bounds name resolution and connecting
// together; 0 means no timeout. A nil resolver means the system's.
func NewDialer(g *Guard, timeout time.Duration, resolver *net.Resolver) *Dialer {
	return &Dialer{dialer: net.Dialer{Timeout: timeout, Resolver: resolver, Control: g.Control}}
}

// DialContext connects to host:port. It returns an *Error that names the host if the
// first address tried is not allowed and no allowed one answers.
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

// named adds the requested host to an error, unless it is the address itself.
func named(e *Error, address string) *Error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == e.Addr.String() {
		return e
	}
	return &Error{Addr: e.Addr, Host: host}
}
