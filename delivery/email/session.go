package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// session is a connection that is greeted and authenticated.
type session struct {
	client *smtp.Client
	conn   net.Conn
	// broken sessions are closed instead of returned to the pool.
	broken bool
	idleAt time.Time
}

// closeWith closes the connection when ctx ends; stop prevents that, and returns false
// if it has happened.
func (s *session) closeWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { s.conn.Close() })
}

// alive reports whether an idle session still works.
func (s *session) alive(ctx context.Context) bool {
	stop := s.closeWith(ctx)
	err := s.client.Noop()
	return stop() && err == nil
}

// connect dials, secures, greets and authenticates, within CommandTimeout.
func (c *Client) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CommandTimeout)
	defer cancel()
	conn, err := c.opts.Dial(ctx, "tcp", c.opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	// go-smtp takes no context: closing the connection ends a call.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	client, err := c.prepare(ctx, conn)
	if !stop() {
		err = fmt.Errorf("connect: %w", context.Cause(ctx))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &session{client: client, conn: conn}, nil
}

func (c *Client) prepare(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	client, err := c.secure(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("secure: %w", err)
	}
	client.CommandTimeout = c.opts.CommandTimeout
	client.SubmissionTimeout = c.opts.SubmissionTimeout
	if err := client.Hello(c.opts.Hello); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if err := c.authenticate(client, conn); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return client, nil
}

func (c *Client) secure(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	switch c.opts.TLS {
	case TLS:
		secured := tls.Client(conn, c.tlsConfig())
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		return smtp.NewClient(secured), nil
	case STARTTLS:
		// Greets once as localhost, in plain; the greeting that counts follows.
		return smtp.NewClientStartTLS(conn, c.tlsConfig())
	}
	return smtp.NewClient(conn), nil
}

// authenticate uses a mechanism that the server offers, PLAIN before LOGIN.
func (c *Client) authenticate(client *smtp.Client, conn net.Conn) error {
	if c.opts.Username == "" {
		return nil
	}
	if c.opts.TLS == None && !isLoopback(conn.RemoteAddr()) {
		return errors.New("the connection is plain and leaves this machine")
	}
	switch {
	case client.SupportsAuth(sasl.Plain):
		return client.Auth(sasl.NewPlainClient("", c.opts.Username, c.opts.Password))
	case client.SupportsAuth(sasl.Login):
		return client.Auth(&login{c.opts.Username, c.opts.Password})
	}
	return errors.New("the server offers neither PLAIN nor LOGIN")
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// login implements AUTH LOGIN: it sends name and password when the server asks for them.
// The client of go-sasl sends the name unasked and accepts one spelling only.
type login struct{ username, password string }

// Start begins without an initial response.
func (l *login) Start() (string, []byte, error) { return sasl.Login, nil, nil }

// Next answers the server's question.
func (l *login) Next(challenge []byte) ([]byte, error) {
	switch prompt := bytes.ToLower(challenge); {
	case bytes.HasPrefix(prompt, []byte("user")):
		return []byte(l.username), nil
	case bytes.HasPrefix(prompt, []byte("pass")):
		return []byte(l.password), nil
	}
	return nil, sasl.ErrUnexpectedServerChallenge
}
