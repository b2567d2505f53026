package email

import (
	"context"
	"errors"
	"fmt"
	"net/mail"

	"github.com/emersion/go-smtp"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is what became of a mail: the server's answer about it.
type Result struct {
	// Status is the SMTP code, 250 when the server took the mail.
	Status int
	// Response is the text of the answer, kept as evidence.
	Response string
	// Simulated tells that a sink took the mail instead of a server.
	Simulated bool
}

// Client sends mails through one server. It is safe for concurrent use.
type Client struct {
	opts Options
	from *mail.Address
	host string
	pool *pool
}

// New makes a client; it connects when the first mail is sent.
func New(opts Options) (*Client, error) {
	opts = opts.withDefaults()
	from, host, err := opts.check()
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts, from: from, host: host}
	c.pool = newPool(opts.MaxConns, opts.IdleTimeout, opts.Now, c.connect)
	return c, nil
}

// Close closes the connections kept; mails under way finish.
func (c *Client) Close() { c.pool.close() }

// Send brings one mail to the server. The result is the server's answer about
// it, good or bad, for delivery.ClassifyMail; the error says why there is none.
// Without From's or the recipient's address being ASCII the server must offer
// SMTPUTF8. When ctx ends the connection is closed at once.
func (c *Client) Send(ctx context.Context, m outbox.Mail) (Result, error) {
	raw, err := Compose(*c.from, m, c.opts.Now())
	if err != nil {
		return Result{}, delivery.Unsendable(err)
	}
	if raw, err = c.opts.DKIM.sign(raw); err != nil {
		return Result{}, delivery.OwnFault(err)
	}
	to, err := recipient(m.To)
	if err != nil {
		return Result{}, delivery.Unsendable(err)
	}
	s, err := c.pool.get(ctx)
	if err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: %w", err))
	}
	stop := s.closeWith(ctx)
	result, err := s.transact(c.from.Address, to, raw)
	if !stop() {
		s.broken = true
		err = interrupted(ctx, err)
	}
	c.pool.put(s)
	return result, err
}

// interrupted prefers the context's reason over "use of closed connection",
// but not over an answer that came first.
func interrupted(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mail server: %w", context.Cause(ctx))
}

// transact is one mail transaction (RFC 5321, section 3.3). The session is
// marked broken unless it is ready for the next one.
func (s *session) transact(from, to string, raw []byte) (Result, error) {
	opts := mailOptions(from, to)
	if supported, _ := s.client.Extension("SMTPUTF8"); opts != nil && !supported {
		return Result{}, delivery.Unsendable(errors.New("mail server: takes no address outside ASCII"))
	}
	s.broken = true
	if err := s.client.Mail(from, opts); err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: sender: %w", err))
	}
	if err := s.client.Rcpt(to, nil); err != nil {
		return s.refused(err)
	}
	w, err := s.client.Data()
	if err != nil {
		return s.refused(err)
	}
	if _, err := w.Write(raw); err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("mail server: text: %w", err))
	}
	answer, err := w.CloseWithResponse()
	if err == nil {
		s.broken = false
		return Result{Status: 250, Response: answer.StatusText}, nil
	}
	if reply, ok := errors.AsType[*smtp.SMTPError](err); ok {
		s.broken = false
		return resultOf(reply), nil
	}
	return Result{}, fmt.Errorf("mail server: outcome unknown: %w", err)
}

// refused turns the server's answer about the recipient into a result and
// readies the session for the next mail.
func (s *session) refused(err error) (Result, error) {
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

func mailOptions(addresses ...string) *smtp.MailOptions {
	for _, a := range addresses {
		for _, r := range a {
			if r >= 0x80 {
				return &smtp.MailOptions{UTF8: true}
			}
		}
	}
	return nil
}
