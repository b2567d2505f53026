package smpp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

func TestTheBindSaysWhoWeAre(t *testing.T) {
	for name, tc := range map[string]struct {
		bind    Bind
		command uint32
		want    string
	}{
		"as transceiver": {"", 9, "us\x00secret\x00vma\x00\x34\x00\x00447\x00"},
		"as receiver":    {Receiver, 1, "us\x00secret\x00vma\x00\x34\x00\x00447\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			c, _ := start(t, s, &log{}, func(o *Options) { o.SystemType, o.AddressRange, o.Bind = "vma", "447", tc.bind })
			p, bind := s.accept()
			if bind.command != tc.command || string(bind.body) != tc.want {
				t.Errorf("got 0x%X %q", bind.command, bind.body)
			}
			p.say(0x0B, 0, 77, "61 00 62 00") // an outbind that comes across
			p.say(bind.command|nack, 0, bind.sequence, "")
			eventually(t, "it is bound", func() bool { return c.Check(t.Context()) == nil })
		})
	}
}

func TestABindThatFailsIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(p *peer, bind heard)
		want   string
	}{
		"it is refused": {func(p *peer, bind heard) { p.say(bind.command|nack, 0x05, bind.sequence, "") }, "bind: the SMSC refused the bind with 0x05, "},
		"it is refused without a body": {
			func(p *peer, bind heard) { p.say(bind.command|nack, 0x0E, bind.sequence, "") }, "bind: the SMSC refused the bind with 0x0E, ",
		},
		"it is not understood":      {func(p *peer, bind heard) { p.say(nack, 0, bind.sequence, "") }, "bind: the SMSC did not understand the bind"},
		"the SMSC hangs up":         {func(p *peer, _ heard) { p.conn.Close() }, "bind: "},
		"the answer is no SMPP":     {func(p *peer, _ heard) { p.write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, "bind: a command_length of 1213486160"},
		"the answer has a bad size": {func(p *peer, _ heard) { p.write([]byte{0, 0, 0, 5, 1}) }, "bind: a command_length of 5"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			failed := ""
			c, _ := start(t, s, &log{}, func(o *Options) { o.Timeout, o.LongestPause = patience, 200*time.Millisecond })
			p, bind := s.accept()
			tc.answer(p, bind)
			eventually(t, "it says what is wrong", func() bool {
				if err := c.Check(t.Context()); err != nil { // waiting, or connecting again
					_, failed, _ = strings.Cut(err.Error(), ": ")
				}
				return failed != ""
			})
			if !strings.HasPrefix(failed, tc.want) || strings.Contains(failed, "secret") {
				t.Errorf("got %q, want %q", failed, tc.want)
			}
			s.bound()
			eventually(t, "it is bound", func() bool { return c.Check(t.Context()) == nil })
		})
	}
}

func TestABindThatIsNeverAnswered(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &log{}, func(o *Options) { o.Timeout = 20 * time.Millisecond })
	s.accept()
	eventually(t, "it gives up", func() bool {
		err := c.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "i/o timeout")
	})
}

func TestPauses(t *testing.T) {
	c, err := New(Options{Name: "one", Addr: "h:1", Accept: (&log{}).accept, Rand: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	for failures, want := range []time.Duration{750, 1500, 3000, 6000, 12000, 24000, 45000, 45000} {
		if got := c.backoff(failures, errors.New("x")); got != want*time.Millisecond {
			t.Errorf("after %d failures %s, want %s", failures, got, want*time.Millisecond)
		}
	}
	if got := c.backoff(1000, nil); got != 45*time.Second {
		t.Errorf("after a thousand failures %s", got)
	}
	if got := c.backoff(0, &BindError{Status: 0x0E}); got != 45*time.Second {
		t.Errorf("after a wrong password %s, want the longest pause", got)
	}
	c.o.Rand = func() float64 { return 0 }
	if got := c.backoff(0, nil); got != time.Second {
		t.Errorf("without luck %s", got)
	}
}

func TestNewRefuses(t *testing.T) {
	accept := (&log{}).accept
	for name, o := range map[string]Options{
		"nobody who accepts": {Name: "one", Addr: "h:1"},
		"no name":            {Addr: "h:1", Accept: accept},
		"no port":            {Name: "one", Addr: "h", Accept: accept},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestTLS(t *testing.T) {
	certificate, roots := selfSigned(t)
	s := newSMSC(t)
	s.l = tlsListener{s.l, &tls.Config{Certificates: []tls.Certificate{certificate}}}
	l := &log{}
	start(t, s, l, func(o *Options) { o.TLS = &tls.Config{RootCAs: roots} })
	p := s.bound()
	p.say(deliverSM, 0, 1, message("hello"))
	p.answers(deliverSMResp, 0, 1)

	untrusting, _ := start(t, s, l, func(o *Options) { o.TLS = &tls.Config{} })
	go func() { // the handshake fails on both sides
		if conn, err := s.l.Accept(); err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			conn.Close()
		}
	}()
	eventually(t, "a certificate that nobody vouches for is refused", func() bool {
		err := untrusting.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "certificate")
	})
}

// tlsListener takes TLS connections.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

func (l tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(conn, l.config), nil
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
