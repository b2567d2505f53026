package smpp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheBindCarriesTheCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		bind    Bind
		command uint32
		want    string
	}{
		"transceiver": {"", 9, "us\x00secret\x00vma\x00\x34\x00\x00447\x00"},
		"receiver":    {Receiver, 1, "us\x00secret\x00vma\x00\x34\x00\x00447\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			c, _ := start(t, s, &store{}, func(o *Options) { o.SystemType, o.AddressRange, o.Bind = "vma", "447", tc.bind })
			p, bind := s.acceptConn()
			relaytest.Equal(t, "the command of the bind", bind.command, tc.command)
			relaytest.Equal(t, "the body of the bind", string(bind.body), tc.want)
			p.send(0x0B, 0, 77, "61 00 62 00") // an outbind before the response
			p.send(bind.command|nack, 0, bind.sequence, "")
			awaitBound(t, c)
		})
	}
}

func TestAFailedBindIsRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(p *peer, bind received)
		want   string
	}{
		"a refusal": {func(p *peer, bind received) { p.send(bind.command|nack, 0x05, bind.sequence, "") }, "bind: the SMSC refused the bind with 0x05, "},
		"a refusal without a body": {
			func(p *peer, bind received) { p.send(bind.command|nack, 0x0E, bind.sequence, "") }, "bind: the SMSC refused the bind with 0x0E, ",
		},
		"a generic_nack":                    {func(p *peer, bind received) { p.send(nack, 0, bind.sequence, "") }, "bind: the SMSC did not understand the bind"},
		"a closed connection":               {func(p *peer, _ received) { p.conn.Close() }, "bind: "},
		"a response in HTTP":                {func(p *peer, _ received) { p.write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, "bind: invalid command_length 1213486160"},
		"a response with an invalid length": {func(p *peer, _ received) { p.write([]byte{0, 0, 0, 5, 1}) }, "bind: invalid command_length 5"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			bindErr := ""
			c, _ := start(t, s, &store{}, func(o *Options) { o.Timeout, o.LongestPause = relaytest.Patience, 200*time.Millisecond })
			p, bind := s.acceptConn()
			tc.answer(p, bind)
			relaytest.Eventually(t, "the bind has failed", func() (any, bool) {
				err := c.Check(t.Context())
				if err != nil { // waiting, or connecting again
					_, bindErr, _ = strings.Cut(err.Error(), ": ")
				}
				return err, bindErr != ""
			})
			if !strings.HasPrefix(bindErr, tc.want) || strings.Contains(bindErr, "secret") {
				t.Errorf("the bind failed with %q, want it to begin with %q, without the password", bindErr, tc.want)
			}
			s.acceptBind()
			awaitBound(t, c)
		})
	}
}

func TestABindWithoutAResponseTimesOut(t *testing.T) {
	s := newSMSC(t)
	c, _ := start(t, s, &store{}, func(o *Options) { o.Timeout = 20 * time.Millisecond })
	s.acceptConn()
	relaytest.Eventually(t, "the bind has timed out", func() (any, bool) {
		err := c.Check(t.Context())
		return err, err != nil && strings.Contains(err.Error(), "i/o timeout")
	})
}

func TestBackoffDoublesUpToTheLongestPause(t *testing.T) {
	c := relaytest.Must(New(Options{Carrier: "one", Name: "1-transceiver", Addr: "h:1", Accept: (&store{}).accept, Rand: func() float64 { return 0.5 }}))(t)
	for failures, want := range []time.Duration{750, 1500, 3000, 6000, 12000, 24000, 45000, 45000} {
		relaytest.Equal(t, fmt.Sprintf("the pause after %d failures", failures), c.backoff(failures, errors.New("x")), want*time.Millisecond)
	}
	relaytest.Equal(t, "the pause after a thousand failures", c.backoff(1000, nil), 45*time.Second)
	relaytest.Equal(t, "the pause after a wrong password", c.backoff(0, bindError(0x0E)), 45*time.Second)
	c.o.Rand = func() float64 { return 0 }
	relaytest.Equal(t, "the pause without jitter", c.backoff(0, nil), time.Second)
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	accept := (&store{}).accept
	for name, o := range map[string]Options{
		"no Accept function": {Carrier: "one", Name: "1-transceiver", Addr: "h:1"},
		"no name":            {Carrier: "one", Addr: "h:1", Accept: accept},
		"no carrier":         {Name: "1-transceiver", Addr: "h:1", Accept: accept},
		"no port":            {Carrier: "one", Name: "1-transceiver", Addr: "h", Accept: accept},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("the options were accepted")
			}
		})
	}
}

func TestBindOverTLS(t *testing.T) {
	certificate, roots := selfSigned(t)
	s := newSMSC(t)
	s.listener = tlsListener{s.listener, &tls.Config{Certificates: []tls.Certificate{certificate}}}
	st := &store{}
	start(t, s, st, func(o *Options) { o.TLS = &tls.Config{RootCAs: roots} })
	p := s.acceptBind()
	p.send(deliverSM, 0, 1, message("hello"))
	p.expect(deliverSMResp, 0, 1)

	untrusting, _ := start(t, s, st, func(o *Options) { o.TLS = &tls.Config{} })
	go func() { // the handshake fails on both sides
		if conn, err := s.listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			conn.Close()
		}
	}()
	relaytest.Eventually(t, "an untrusted certificate is refused", func() (any, bool) {
		err := untrusting.Check(t.Context())
		return err, err != nil && strings.Contains(err.Error(), "certificate")
	})
}

// tlsListener accepts TLS connections.
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
	key := relaytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der := relaytest.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	leaf := relaytest.Must(x509.ParseCertificate(der))(t)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
