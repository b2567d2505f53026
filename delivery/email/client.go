package email

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-smtp"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is the server's reply about a mail.
type Result struct {
	// Status is the SMTP code, 250 if the server accepted the mail.
	Status int
	// Response is the text of the reply.
	Response string
	// Simulated means that a sink accepted the mail instead of a server.
	Simulated bool
}

// Client sends mails through one server. It is safe for concurrent use.
type Client struct {
	opts   Options
	sender *mail.Address
	host   string
	pool   *pool
}

// New returns a client, which connects when the first mail is sent.
func New(opts Options) (*Client, error) {
	opts = opts.withDefaults()
	sender, host, err := opts.check()
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts, sender: sender, host: host}
	c.pool = &pool{slots: make(chan struct{}, maxConns), connect: c.connect}
	return c, nil
}

// Close closes idle connections; running transactions finish.
func (c *Client) Close() { c.pool.close() }

// Send sends one mail. The result is the positive or negative reply of the server about the
// mail, for delivery.ClassifyMail. If the server did not reply, Send returns an error. If an
// address is not ASCII, the server must support SMTPUTF8. When ctx ends, the connection is
// closed at once.
func (c *Client) Send(ctx context.Context, m outbox.Mail) (Result, error) {
	raw, err := Compose(*c.sender, m, time.Now())
	if err != nil {
		return Result{}, delivery.Unsendable(err)
	}
	if raw, err = c.opts.DKIM.sign(raw); err != nil {
		return Result{}, delivery.OwnFault(err)
	}
	mailbox, err := recipient(m.To)
	if err != nil {
		return Result{}, delivery.Unsendable(err)
	}
	s, err := c.pool.get(ctx)
	if err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: %w", err))
	}
	stop := s.closeAfter(ctx)
	result, err := s.transact(c.sender.Address, mailbox, raw)
	if !stop() {
		s.broken = true
		if err != nil { // "use of closed connection", unless the reply came first
			err = fmt.Errorf("mail server: %w", context.Cause(ctx))
		}
	}
	c.pool.put(s)
	return result, err
}

// transact runs one mail transaction (RFC 5321, section 3.3). It marks the
// session broken unless it is ready for the next one.
func (s *session) transact(sender, recipient string, raw []byte) (Result, error) {
	var opts *smtp.MailOptions
	if strings.ContainsFunc(sender+recipient, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if supported, _ := s.client.Extension("SMTPUTF8"); !supported {
			return Result{}, delivery.Unsendable(errors.New("mail server: does not support addresses outside ASCII"))
		}
		opts = &smtp.MailOptions{UTF8: true}
	}
	s.broken = true
	if err := s.client.Mail(sender, opts); err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: sender: %w", err))
	}
	if err := s.client.Rcpt(recipient, nil); err != nil {
		return s.recipientRefused(err)
	}
	w, err := s.client.Data()
	if err != nil {
		return s.recipientRefused(err)
	}
	if _, err := w.Write(raw); err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: text: %w", err))
	}
	accepted, err := w.CloseWithResponse()
	if err == nil {
		s.broken = false
		return Result{Status: 250, Response: accepted.StatusText}, nil
	}
	if reply, ok := errors.AsType[*smtp.SMTPError](err); ok {
		s.broken = false
		return resultOf(reply), nil
	}
	return Result{}, fmt.Errorf("mail server: outcome unknown: %w", err)
}

// recipientRefused converts the reply about the recipient and resets the session.
func (s *session) recipientRefused(err error) (Result, error) {
	reply, ok := errors.AsType[*smtp.SMTPError](err)
	if !ok {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: recipient: %w", err))
	}
	s.broken = reply.Code == 421 || s.client.Reset() != nil
	return resultOf(reply), nil
}

func resultOf(reply *smtp.SMTPError) Result {
	text := reply.Message
	if e := reply.EnhancedCode; e[0] > 0 {
		text = fmt.Sprintf("%d.%d.%d %s", e[0], e[1], e[2], text)
	}
	return Result{Status: reply.Code, Response: text}
}
