package email

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func newMail(recipient string) outbox.Mail {
	return outbox.Mail{To: recipient, Subject: "SMS", Text: "Hello", MessageID: "d1@penstock.test"}
}

// expectClass compares the class of a result.
func expectClass(t *testing.T, label string, r Result, err error, want delivery.Class) {
	t.Helper()
	if got := delivery.ClassifyMail(r.Status, r.Response, err).Class; got != want {
		t.Errorf("%s: the class is %s, want %s; status %d, response %q, error %v", label, got, want, r.Status, r.Response, err)
	}
}

func reply(code int, e smtp.EnhancedCode, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: e, Message: text}
}

func TestEachRecipientHasItsOwnResultOverOneConnection(t *testing.T) {
	p := startPeer(t, withoutTLS, &peer{rcpt: func(recipient string) error {
		switch {
		case strings.HasPrefix(recipient, "greylisted"):
			return reply(451, smtp.EnhancedCode{4, 7, 1}, "Greylisted")
		case strings.HasPrefix(recipient, "unknown"):
			return reply(550, smtp.EnhancedCode{5, 1, 1}, "No such user")
		}
		return nil
	}})
	dials := 0
	c := newClient(t, Options{Addr: p.addr, TLS: None, Dial: countDials(&dials)})
	for _, step := range []struct {
		recipient string
		status    int
		text      string
		want      delivery.Class
	}{
		{"a@example.test", 250, "", delivery.Delivered},
		{"greylisted@example.test", 451, "4.7.1 Greylisted", delivery.Retry},
		{"unknown@example.test", 550, "5.1.1 No such user", delivery.Dead},
		{"b@example.test", 250, "", delivery.Delivered},
	} {
		r, err := c.Send(t.Context(), newMail(step.recipient))
		expectClass(t, step.recipient, r, err, step.want)
		expectReply(t, step.recipient, r, step.status, step.text)
	}
	relaytest.Equal(t, "the number of connections", dials, 1)
	relaytest.Equal(t, "the number of mails", len(p.received()), 2)
}

func TestTheReplyToTheFinalDotIsTheResult(t *testing.T) {
	for name, c := range map[string]struct {
		data func(net.Conn) error
		want delivery.Class
		text string
	}{
		"accepted":            {nil, delivery.Delivered, ""},
		"refused temporarily": {func(net.Conn) error { return reply(452, smtp.EnhancedCode{4, 3, 1}, "Full") }, delivery.Retry, "4.3.1 Full"},
		"refused permanently": {func(net.Conn) error { return reply(554, smtp.EnhancedCode{5, 7, 1}, "Spam") }, delivery.Dead, "5.7.1 Spam"},
		"no reply":            {func(conn net.Conn) error { return conn.Close() }, delivery.Retry, "outcome unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, withoutTLS, &peer{data: c.data})
			client := newClient(t, Options{Addr: p.addr, TLS: None})
			r, err := client.Send(t.Context(), newMail("a@example.test"))
			expectClass(t, "the mail", r, err, c.want)
			if text := fmt.Sprint(r.Response, err); !strings.Contains(text, c.text) {
				t.Errorf("response and error = %q, want them to contain %q", text, c.text)
			}
			_, _ = client.Send(t.Context(), newMail("a@example.test"))
			for _, raw := range p.received() {
				if !strings.Contains(raw, "Message-Id: <d1@penstock.test>\r\n") {
					t.Errorf("received a mail without the Message-ID d1@penstock.test: %s", raw)
				}
			}
		})
	}
}

func TestTLSNeverFallsBack(t *testing.T) {
	for name, c := range map[string]struct {
		peer   peerTLS
		client string
		trust  bool
		want   delivery.Class
	}{
		"starttls, offered by the server":     {withSTARTTLS, STARTTLS, true, delivery.Delivered},
		"starttls, not offered by the server": {withoutTLS, STARTTLS, true, delivery.Fault},
		"starttls, unknown authority":         {withSTARTTLS, STARTTLS, false, delivery.Fault},
		"tls":                                 {withTLS, TLS, true, delivery.Delivered},
		"tls, unknown authority":              {withTLS, TLS, false, delivery.Fault},
		"tls to a server without TLS":         {withoutTLS, TLS, true, delivery.Fault},
		"none":                                {withoutTLS, None, true, delivery.Delivered},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, c.peer, &peer{})
			o := Options{Addr: p.addr, TLS: c.client, Hello: "gateway.test", CommandTimeout: time.Second}
			if c.trust {
				o.RootCAs = p.cas
			}
			r, err := newClient(t, o).Send(t.Context(), newMail("a@example.test"))
			expectClass(t, "the mail", r, err, c.want)
			relaytest.Equal(t, "one mail arrived", len(p.received()) == 1, c.want == delivery.Delivered)
			if c.want == delivery.Delivered && (len(p.hellos) == 0 || p.hellos[len(p.hellos)-1] != "gateway.test") {
				t.Errorf("names in the greetings = %q, want gateway.test as the last", p.hellos)
			}
		})
	}
}

func TestAuthenticationUsesAMechanismThatTheServerOffers(t *testing.T) {
	for name, c := range map[string]struct {
		mechs    []string
		password string
		want     delivery.Class
	}{
		"PLAIN":                       {[]string{"PLAIN"}, "secret", delivery.Delivered},
		"LOGIN":                       {[]string{"LOGIN"}, "secret", delivery.Delivered},
		"PLAIN and LOGIN":             {[]string{"LOGIN", "PLAIN"}, "secret", delivery.Delivered},
		"a wrong password":            {[]string{"PLAIN"}, "other", delivery.Fault},
		"a wrong password with LOGIN": {[]string{"LOGIN"}, "other", delivery.Fault},
		"an unknown mechanism":        {[]string{"XOAUTH2"}, "secret", delivery.Fault},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, withSTARTTLS, &peer{mechs: c.mechs, password: "secret"})
			r, err := newClient(t, Options{Addr: p.addr, RootCAs: p.cas, Username: "gateway", Password: c.password}).Send(t.Context(), newMail("a@example.test"))
			expectClass(t, "the mail", r, err, c.want)
			if err != nil && strings.Contains(err.Error(), c.password) {
				t.Errorf("the error contains the password: %v", err)
			}
		})
	}
}

// remoteConn is a loopback connection with the address of another machine.
type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 25} }

func TestCredentialsLeaveTheMachineOnlyEncrypted(t *testing.T) {
	p := startPeer(t, withoutTLS, &peer{mechs: []string{"PLAIN"}, password: "secret"})
	o := Options{Addr: p.addr, TLS: None, Username: "gateway", Password: "secret"}
	r, err := newClient(t, o).Send(t.Context(), newMail("a@example.test"))
	expectClass(t, "to the same machine", r, err, delivery.Delivered)
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return remoteConn{conn}, err
	}
	r, err = newClient(t, o).Send(t.Context(), newMail("a@example.test"))
	expectClass(t, "to another machine", r, err, delivery.Fault)
	if err == nil || !strings.Contains(err.Error(), "plain") {
		t.Errorf("to another machine: error = %v, want it to contain plain", err)
	}
}

func TestAServerThatIsDownIsAFaultOfTheGateway(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	l.Close()
	r, err := newClient(t, Options{Addr: l.Addr().String(), TLS: None}).Send(t.Context(), newMail("a@example.test"))
	expectClass(t, "a refused connection", r, err, delivery.Fault)
}

func TestTheContextEndsAMailToAHangingServer(t *testing.T) {
	reached, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	p := startPeer(t, withoutTLS, &peer{data: func(net.Conn) error { close(reached); <-hang; return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	r, err := newClient(t, Options{Addr: p.addr, TLS: None}).Send(ctx, newMail("a@example.test"))
	expectClass(t, "a cancelled mail", r, err, delivery.Fault)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}

func TestAServerThatNeverGreetsTimesOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	relaytest.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	for _, mode := range []string{None, STARTTLS, TLS} {
		r, err := newClient(t, Options{Addr: l.Addr().String(), TLS: mode, CommandTimeout: 50 * time.Millisecond}).Send(t.Context(), newMail("a@example.test"))
		expectClass(t, mode, r, err, delivery.Fault)
	}
}

func TestAConnectionThatDiedWhileIdleIsReplaced(t *testing.T) {
	var conns []net.Conn
	p := startPeer(t, withoutTLS, &peer{})
	c := newClient(t, Options{Addr: p.addr, TLS: None, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		conns = append(conns, conn)
		return conn, err
	}})
	for i := range 2 {
		r, err := c.Send(t.Context(), newMail("a@example.test"))
		expectClass(t, fmt.Sprintf("mail %d", i), r, err, delivery.Delivered)
		if len(conns) == 0 {
			t.Fatal("no connection was made")
		}
		conns[len(conns)-1].Close()
	}
	relaytest.Equal(t, "the number of connections", len(conns), 2)
}

func TestAGuardedDialerRefusesPrivateAddresses(t *testing.T) {
	p := startPeer(t, withoutTLS, &peer{})
	for _, addr := range []string{p.addr, "[::ffff:127.0.0.1]:25", "169.254.169.254:25", "localhost:25", "[64:ff9b::7f00:1]:25"} {
		c := newClient(t, Options{Addr: addr, TLS: None, Dial: guard.NewDialer(guard.New([]netip.Prefix{}), time.Second, nil).DialContext})
		_, err := c.Send(t.Context(), newMail("a@example.test"))
		if _, refused := errors.AsType[*guard.Error](err); !refused {
			t.Errorf("%s: got the error %v, want a refusal by the guard", addr, err)
		}
	}
}

func TestMailsThatCannotBeSentAreDead(t *testing.T) {
	p := startPeer(t, withoutTLS, &peer{})
	c := newClient(t, Options{Addr: p.addr, TLS: None})
	for name, m := range map[string]outbox.Mail{
		"no recipient":                  {MessageID: "d1"},
		"two recipients":                {To: "a@example.test, b@example.test", MessageID: "d1"},
		"a line break in the recipient": {To: "a@example.test\r\nRCPT TO:<b@example.test>", MessageID: "d1"},
		"no message id":                 {To: "a@example.test"},
		"SMTPUTF8 not offered":          {To: "zoë@example.test", MessageID: "d1"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := c.Send(t.Context(), m)
			expectClass(t, "the mail", r, err, delivery.Dead)
		})
	}
	r, err := c.Send(t.Context(), newMail("a@example.test"))
	expectClass(t, "a mail afterwards", r, err, delivery.Delivered)
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no port":                 {Addr: "mail.test", From: "a@b.test"},
		"no host":                 {Addr: ":25", From: "a@b.test"},
		"no sender":               {Addr: "mail.test:25"},
		"an unknown tls":          {Addr: "mail.test:25", From: "a@b.test", TLS: "ssl"},
		"a broken hello":          {Addr: "mail.test:25", From: "a@b.test", Hello: "a\r\nb"},
		"unencrypted credentials": {Addr: "198.51.100.1:25", From: "a@b.test", TLS: None, Username: "u"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("options with %s were accepted", name)
		}
	}
}
