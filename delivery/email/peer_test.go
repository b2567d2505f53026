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

// peer is a server in this process. A test controls its replies.
type peer struct {
	addr string
	cas  *x509.CertPool

	rcpt     func(recipient string) error
	data     func(conn net.Conn) error
	mechs    []string
	password string

	mu     sync.Mutex
	hellos []string
	mails  []string
}

// peerTLS is the way in which a peer secures connections.
type peerTLS int

const (
	withoutTLS peerTLS = iota
	withSTARTTLS
	withTLS
)

func startPeer(t *testing.T, mode peerTLS, p *peer) *peer {
	t.Helper()
	keyAndCertificate, pool := smtptest.Certificate(t)
	cert := relaytest.Must(tls.X509KeyPair(keyAndCertificate, keyAndCertificate))(t)
	s := smtp.NewServer(p)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "peer.test", true, log.New(io.Discard, "", 0)
	l := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.addr, p.cas = l.Addr().String(), pool
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	switch mode {
	case withSTARTTLS:
		s.TLSConfig = config
	case withTLS:
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

func (p *peer) received() []string {
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

func (s *peerSession) Rcpt(recipient string, _ *smtp.RcptOptions) error {
	if s.rcpt == nil {
		return nil
	}
	return s.rcpt(recipient)
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

// loginServer implements AUTH LOGIN with the prompts of Exchange and Postfix.
type loginServer struct {
	check     func(user, password string) error
	responses []string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if response != nil {
		l.responses = append(l.responses, string(response))
	}
	switch len(l.responses) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	case 2:
		return nil, true, l.check(l.responses[0], l.responses[1])
	}
	return nil, false, errors.New("too many responses")
}
