package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

type session struct {
	client *smtp.Client
	conn   net.Conn
	// broken sessions are closed instead of returned to the pool.
	broken bool
	idleAt time.Time
}

// closeAfter closes the connection when ctx ends. stop prevents this, and returns false if
// the connection was closed.
func (s *session) closeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { s.conn.Close() })
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

func (c *Client) prepare(ctx context.Context, conn net.Conn) (client *smtp.Client, err error) {
	config := &tls.Config{ServerName: c.host, RootCAs: c.opts.RootCAs, MinVersion: tls.VersionTLS12}
	switch c.opts.TLS {
	case TLS:
		secured := tls.Client(conn, config)
		err = secured.HandshakeContext(ctx)
		client = smtp.NewClient(secured)
	case STARTTLS:
		// NewClientStartTLS greets the server as localhost. The real greeting follows.
		client, err = smtp.NewClientStartTLS(conn, config)
	default:
		client = smtp.NewClient(conn)
	}
	if err != nil {
		return nil, fmt.Errorf("secure: %w", err)
	}
	client.CommandTimeout = c.opts.CommandTimeout
	client.SubmissionTimeout = submissionTimeout
	if err := client.Hello(c.opts.Hello); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if err := c.authenticate(client, conn); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return client, nil
}

// authenticate uses a mechanism that the server offers, PLAIN before LOGIN.
func (c *Client) authenticate(client *smtp.Client, conn net.Conn) error {
	if c.opts.Username == "" {
		return nil
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); c.opts.TLS == None && (!ok || !tcp.IP.IsLoopback()) {
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

// login implements AUTH LOGIN: it sends the name and the password when the server requests
// them. The client of go-sasl sends the name before it is requested, and accepts only one
// spelling of the prompts.
type login struct{ username, password string }

// Start begins without an initial response.
func (l *login) Start() (string, []byte, error) { return sasl.Login, nil, nil }

// Next responds to a prompt of the server.
func (l *login) Next(challenge []byte) ([]byte, error) {
	switch prompt := bytes.ToLower(challenge); {
	case bytes.HasPrefix(prompt, []byte("user")):
		return []byte(l.username), nil
	case bytes.HasPrefix(prompt, []byte("pass")):
		return []byte(l.password), nil
	}
	return nil, sasl.ErrUnexpectedServerChallenge
}

const (
	maxConns          = 4                // concurrent connections
	idleTimeout       = 30 * time.Second // after which an unused connection is closed
	submissionTimeout = 2 * time.Minute  // of the answer to the final dot
)

// pool holds idle sessions and limits how many are connected.
type pool struct {
	slots   chan struct{}
	connect func(context.Context) (*session, error)

	mu     sync.Mutex
	idle   []*session
	closed bool
}

// get waits for a slot and returns a working session, which the caller must return with put.
func (p *pool) get(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for s := p.pop(); s != nil; s = p.pop() {
		if time.Since(s.idleAt) < idleTimeout {
			stop := s.closeAfter(ctx)
			if err := s.client.Noop(); stop() && err == nil {
				return s, nil
			}
		}
		s.conn.Close()
	}
	s, err := p.connect(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return s, nil
}

func (p *pool) pop() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	s := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return s
}

func (p *pool) put(s *session) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.broken || p.closed {
		s.conn.Close()
		return
	}
	s.idleAt = time.Now()
	p.idle = append(p.idle, s)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.idle {
		s.conn.Close()
	}
	p.idle = nil
}
