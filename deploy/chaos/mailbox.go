package main

import (
	"io"
	"log"
	"net"
	"net/mail"
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/penstock/penstock/deploy/servers"
)

// mailbox is the mail server of the account's relays. It remembers what it has
// taken: what it answers with 250.
type mailbox struct {
	addr   string
	sink   *sink // which remembers
	server *smtp.Server
	phase[manner]
}

func newMailbox(s *sink) (*mailbox, error) {
	m := &mailbox{addr: servers.FreeAddr(), sink: s}
	return m, m.start()
}

func (m *mailbox) start() error {
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		return err
	}
	m.server = smtp.NewServer(m)
	m.server.Domain, m.server.ErrorLog = "mailbox.test", log.New(io.Discard, "", 0)
	go func(server *smtp.Server) { _ = server.Serve(l) }(m.server)
	return nil
}

// kill ends the server with its connections.
func (m *mailbox) kill() { _ = m.server.Close() }

// NewSession begins a connection.
func (m *mailbox) NewSession(c *smtp.Conn) (smtp.Session, error) { return &mailSession{m, c}, nil }

// mailSession is a connection of a gateway.
type mailSession struct {
	*mailbox
	conn *smtp.Conn
}

// Mail, Rcpt and Reset take any sender and recipient.
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }

// Data takes a mail, as the manner has it.
func (s *mailSession) Data(r io.Reader) error {
	how, ended := s.now()
	one, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(one.Body)
	if err != nil {
		return err
	}
	switch how {
	case failing:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "not now"}
	case hanging:
		<-ended
		return s.conn.Close()
	case resetting:
		return s.conn.Close()
	case accepting, dripping:
	}
	s.sink.remember("message "+strings.TrimSpace(string(text)), one.Header.Get("Message-Id"))
	return nil
}
