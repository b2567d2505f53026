package httpd

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"
)

// Certificate is the certificate of a TLS listener, which can be exchanged while
// connections are open. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	present           atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads a certificate with its chain, and its key, both PEM.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	return c, c.Reload()
}

// Reload reads the files again. After an error the certificate stays as it was.
func (c *Certificate) Reload() error {
	certificate, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", c.certFile, c.keyFile, err)
	}
	c.present.Store(&certificate)
	return nil
}

// Expires returns when the certificate is no longer valid.
func (c *Certificate) Expires() time.Time { return c.present.Load().Leaf.NotAfter }

// Config returns the configuration of a listener: TLS 1.2 or 1.3. New connections get
// the certificate that was read last.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.present.Load(), nil },
	}
}
