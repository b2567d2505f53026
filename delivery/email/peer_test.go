package email

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/relay/relaytest"
)

// peer is a server in the process whose replies a test chooses.
type peer struct {
	addr string
	cas  *x509.CertPool

	rcpt     func(to string) error
	data     func(conn net.Conn) error
	mechs    []string
	password string

	mu     sync.Mutex
	hellos []string
	mails  []string
}

// peerTLS says how the peer secures connections.
type peerTLS int

const (
	plain peerTLS = iota
	upgrades
	implicit
)

func startPeer(t *testing.T, how peerTLS, p *peer) *peer {
	t.Helper()
	both, pool := smtptest.Certificate(t)
	cert := relaytest.Must(tls.X509KeyPair(both, both))(t)
	s := smtp.NewServer(p)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "peer.test", true, log.New(io.Discard, "", 0)
	l := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.addr, p.cas = l.Addr().String(), pool
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	switch how {
	case upgrades:
		s.TLSConfig = config
	case implicit:
		l = tls.NewListener(l, config)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return p
}

// NewSession implements smtp.Backend.
func (p *peer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hellos = append(p.hellos, c.Hostname())
	return &peerSession{p, c}, nil
}

func (p *peer) arrived() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mails
}

type peerSession struct {
	*peer
	conn *smtp.Conn
}

func (s *peerSession) Reset()                               {}
func (s *peerSession) Logout() error                        { return nil }
func (s *peerSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *peerSession) AuthMechanisms() []string             { return s.mechs }

func (s *peerSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.rcpt == nil {
		return nil
	}
	return s.rcpt(to)
}

func (s *peerSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mails = append(s.mails, string(raw))
	s.mu.Unlock()
	if s.data == nil {
		return nil
	}
	return s.data(s.conn.Conn())
}

func (s *peerSession) Auth(mech string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != "gateway" || password != s.password {
			return smtp.ErrAuthFailed
		}
		return nil
	}
	if mech == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer prompts as Exchange and Postfix do.
type loginServer struct {
	check  func(user, password string) error
	answer []string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if response != nil {
		l.answer = append(l.answer, string(response))
	}
	switch len(l.answer) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	case 2:
		return nil, true, l.check(l.answer[0], l.answer[1])
	}
	return nil, false, errors.New("too many answers")
}
