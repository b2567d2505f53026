package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"os"
	"time"
)

// The ways to secure a connection.
const (
	STARTTLS = "starttls" // plain, then upgraded; refused without (the default)
	TLS      = "tls"      // TLS from the first byte
	None     = "none"     // plain
)

// Options tune a client. Addr and From are required.
type Options struct {
	// Addr is host:port of the server.
	Addr string
	// Username and Password authenticate us; no authentication without.
	Username, Password string
	// From is the sender, "Name <a@b>" or an address; its address is the
	// envelope's as well.
	From string
	// TLS is STARTTLS, TLS or None; STARTTLS.
	TLS string
	// DKIM signs every mail; nil signs none.
	DKIM *DKIM
	// Hello is the name we greet with; the host's name.
	Hello string
	// CommandTimeout bounds connecting and each answer; 30 s.
	CommandTimeout time.Duration
	// SubmissionTimeout bounds the answer to the final dot; 2 min.
	SubmissionTimeout time.Duration
	// MaxConns bounds connections at once; 4.
	MaxConns int
	// IdleTimeout is how long a connection is kept unused; 30 s.
	IdleTimeout time.Duration
	// Dial replaces a plain dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// RootCAs replaces the system's trusted roots.
	RootCAs *x509.CertPool
	// Now replaces the clock.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.TLS == "" {
		o.TLS = STARTTLS
	}
	if o.Hello == "" {
		o.Hello = hostname()
	}
	o.CommandTimeout = orDefault(o.CommandTimeout, 30*time.Second)
	o.SubmissionTimeout = orDefault(o.SubmissionTimeout, 2*time.Minute)
	o.IdleTimeout = orDefault(o.IdleTimeout, 30*time.Second)
	o.MaxConns = orDefault(o.MaxConns, 4)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func orDefault[T int | time.Duration](v, preset T) T {
	if v <= 0 {
		return preset
	}
	return v
}

func hostname() string {
	if name, err := os.Hostname(); err == nil && validHello(name) {
		return name
	}
	return "localhost"
}

func validHello(name string) bool {
	for _, r := range name {
		if r <= ' ' || r >= 0x7f {
			return false
		}
	}
	return name != ""
}

// check validates what has defaults already and returns the sender and the
// server's name for its certificate.
func (o Options) check() (from *mail.Address, host string, err error) {
	host, _, err = net.SplitHostPort(o.Addr)
	if err != nil || host == "" {
		return nil, "", fmt.Errorf("email: server address %q is not host:port", o.Addr)
	}
	if from, err = mail.ParseAddress(o.From); err != nil {
		return nil, "", fmt.Errorf("email: sender %q is not a valid address", o.From)
	}
	if err := o.DKIM.check(); err != nil {
		return nil, "", err
	}
	switch {
	case o.TLS != STARTTLS && o.TLS != TLS && o.TLS != None:
		return nil, "", fmt.Errorf("email: tls %q is not starttls, tls or none", o.TLS)
	case !validHello(o.Hello):
		return nil, "", errors.New("email: hello name is not valid")
	case o.Username != "" && o.TLS == None && !mayBeLoopback(host):
		return nil, "", errors.New("email: credentials need tls starttls or tls, as the server is not on this machine")
	}
	return from, host, nil
}

// mayBeLoopback is false for a literal address that is none; a name is judged
// once it is connected.
func mayBeLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err != nil || addr.Unmap().IsLoopback()
}

func (c *Client) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: c.host, RootCAs: c.opts.RootCAs, MinVersion: tls.VersionTLS12}
}
