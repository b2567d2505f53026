package email

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
)

// DKIM is the key that signs mails (RFC 6376; Ed25519: RFC 8463): every
// header field and the text, canonicalised relaxed/relaxed.
type DKIM struct {
	Domain string
	// Selector names the key: its record is at <selector>._domainkey.<domain>.
	Selector string
	Key      crypto.Signer
}

// ParseKey parses a private key for DKIM: RSA of at least 1024 bits or Ed25519, in PEM as
// PKCS #8 or, for RSA, PKCS #1. Errors do not contain any part of the key.
func ParseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("dkim key: not PEM")
	}
	var parsed any
	var err error
	if block.Type == "RSA PRIVATE KEY" {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	} else {
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("dkim key: %s is not a private key", block.Type)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("dkim key: neither RSA nor Ed25519")
	}
	return key, (&DKIM{Domain: "example.test", Selector: "s", Key: key}).check()
}

func (d *DKIM) check() error {
	if d == nil {
		return nil
	}
	if strings.ContainsAny(d.Domain+d.Selector, " \t\r\n;=") {
		return errors.New("email: dkim: domain or selector is not a name")
	}
	if _, err := d.sign([]byte("From: <a@example.test>\r\n\r\nx\r\n")); err != nil {
		return fmt.Errorf("email: %w", err)
	}
	return nil
}

// sign returns the mail with a signature header. A nil DKIM returns the mail unchanged.
func (d *DKIM) sign(raw []byte) ([]byte, error) {
	if d == nil {
		return raw, nil
	}
	var buffer bytes.Buffer
	err := dkim.Sign(&buffer, bytes.NewReader(raw), &dkim.SignOptions{
		Domain: d.Domain, Selector: d.Selector, Signer: d.Key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		return nil, fmt.Errorf("dkim: sign: %w", err)
	}
	return buffer.Bytes(), nil
}
