package email

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"os"
	"strings"
	"time"
)

// The ways to secure a connection.
const (
	STARTTLS = "starttls" // plain, then upgraded; a server without STARTTLS is refused (the default)
	TLS      = "tls"      // TLS from the first byte
	None     = "none"     // plain
)

// Options configures a client. Addr and From are required.
type Options struct {
	// Addr is host:port of the server.
	Addr string
	// Username and Password authenticate the client; empty disables authentication.
	Username, Password string
	// From is the sender, "Name <a@b>" or an address, and the sender of the envelope.
	From string
	// TLS is STARTTLS, TLS or None; empty means STARTTLS.
	TLS string
	// DKIM signs every mail; nil disables it.
	DKIM *DKIM
	// Hello is the name of the client in the greeting; empty means the host name.
	Hello string
	// CommandTimeout limits connecting and each response; 0 means 30 s.
	CommandTimeout time.Duration
	// Dial connects to the server; nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// RootCAs are the trusted roots; nil means the roots of the system.
	RootCAs *x509.CertPool
}

func (o Options) withDefaults() Options {
	o.TLS, o.CommandTimeout = cmp.Or(o.TLS, STARTTLS), cmp.Or(o.CommandTimeout, 30*time.Second)
	if name, err := os.Hostname(); o.Hello == "" && err == nil && validHello(name) {
		o.Hello = name
	}
	o.Hello = cmp.Or(o.Hello, "localhost")
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	return o
}

func validHello(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// check validates options with defaults. It returns the sender and the server's name
// for its certificate.
func (o Options) check() (sender *mail.Address, host string, err error) {
	host, _, err = net.SplitHostPort(o.Addr)
	if err != nil || host == "" {
		return nil, "", fmt.Errorf("email: server address %q is not host:port", o.Addr)
	}
	if sender, err = mail.ParseAddress(o.From); err != nil {
		return nil, "", fmt.Errorf("email: sender %q is not a valid address", o.From)
	}
	if err := o.DKIM.check(); err != nil {
		return nil, "", err
	}
	addr, err := netip.ParseAddr(host)
	isRemote := err == nil && !addr.Unmap().IsLoopback() // a name is checked after connecting
	switch {
	case o.TLS != STARTTLS && o.TLS != TLS && o.TLS != None:
		return nil, "", fmt.Errorf("email: tls %q is not starttls, tls or none", o.TLS)
	case !validHello(o.Hello):
		return nil, "", errors.New("email: hello name is not valid")
	case o.Username != "" && o.TLS == None && isRemote:
		return nil, "", errors.New("email: credentials need tls starttls or tls, as the server is not on this machine")
	}
	return sender, host, nil
}
