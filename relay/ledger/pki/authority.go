package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

// noEnd is how a certificate says that it has no well-defined end, RFC 5280
// section 4.1.2.5.
func noEnd() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// Authority is a certificate authority that may issue end-entity certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes one with a P-256 key. It returns its certificate in PEM and
// its private key in PKCS #8.
func NewAuthority(ledgerName, ledgerHash string, now time.Time) (certificate string, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, fmt.Errorf("authority: key: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return "", nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// A common name holds 64 characters at most.
		Subject:   pkix.Name{CommonName: "Ledger " + ledgerHash[:min(32, len(ledgerHash))], Organization: []string{clipText(ledgerName, 64)}},
		NotBefore: now.Add(-time.Minute), NotAfter: noEnd(),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return "", nil, fmt.Errorf("authority: certificate: %w", err)
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return encode(der), key, err
}

// LoadAuthority parses the output of NewAuthority.
func LoadAuthority(certificate string, key []byte) (*Authority, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return nil, errors.New("authority: certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority: certificate: %w", err)
	}
	private, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("authority: key: %w", err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, errors.New("authority: the key cannot sign")
	}
	return &Authority{cert, signer}, nil
}

// Subject is the subject of a certificate.
type Subject struct {
	TokenID    string    // 64 hex digits
	LedgerHash string    // of the ledger the token is on
	From       time.Time // it is valid a minute earlier, for clocks that are slow
	Until      time.Time // zero: without end
}

// URN is the name of the token in a certificate, its only alternative name.
func (s Subject) URN() string { return "urn:penstock:ledger:" + s.LedgerHash + ":token:" + s.TokenID }

// Issue returns a certificate over the request's key, in PEM.
func (a *Authority) Issue(r Request, s Subject) (certificate string, err error) {
	serial, err := serialNumber()
	if err != nil {
		return "", err
	}
	name, err := url.Parse(s.URN())
	if err != nil {
		return "", fmt.Errorf("certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.TokenID}, URIs: []*url.URL{name},
		NotBefore: s.From.Add(-time.Minute), NotAfter: s.Until,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if s.Until.IsZero() {
		template.NotAfter = noEnd()
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, r.csr.PublicKey, a.key)
	if err != nil {
		return "", fmt.Errorf("certificate: %w", err)
	}
	return encode(der), nil
}

// Fingerprint returns the SHA-256 of the DER form of a certificate in PEM, in hex.
func Fingerprint(certificate string) (string, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return "", errors.New("certificate: not PEM")
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:]), nil
}

func encode(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// serialNumber is random and positive, of at most 127 bits.
func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("certificate: serial: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

// clipText cuts to n characters.
func clipText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
