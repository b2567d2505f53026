package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// noEnd returns the end of the validity of certificates that do not expire, RFC 5280 section
// 4.1.2.5.
func noEnd() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// Authority is a certificate authority that may issue end-entity certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority creates an authority with a P-256 key. It returns its certificate in PEM and its
// private key in PKCS #8.
func NewAuthority(ledgerName, ledgerHash string, now time.Time) (certificate string, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, fmt.Errorf("authority: key: %w", err)
	}
	organization := []rune(ledgerName)
	organization = organization[:min(64, len(organization))] // ub-organization-name, RFC 5280
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Ledger " + ledgerHash[:min(32, len(ledgerHash))], Organization: []string{string(organization)}},
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
	LedgerHash string    // the hash of the token's ledger
	From       time.Time // the certificate is valid a minute earlier, because clocks may be slow
	Until      time.Time // zero means that the certificate does not expire
}

// URN returns the name of the token, which is the only alternative name in its certificate.
func (s Subject) URN() string { return "urn:penstock:ledger:" + s.LedgerHash + ":token:" + s.TokenID }

// Issue returns a certificate for the key of the request, in PEM.
func (a *Authority) Issue(r Request, s Subject) (certificate string, err error) {
	name, err := url.Parse(s.URN())
	if err != nil {
		return "", fmt.Errorf("certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: s.TokenID}, URIs: []*url.URL{name},
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

// MaxRequest is the largest length of a request, in bytes of PEM.
const MaxRequest = 16 << 10

// Request is a signing request that was checked: its sender has the private key, and the key is
// strong.
type Request struct{ csr *x509.CertificateRequest }

// ParseRequest reads one PEM block. Its errors are sentences for the sender.
func ParseRequest(text []byte) (Request, error) {
	if len(text) > MaxRequest {
		return Request{}, fmt.Errorf("The csr may not be longer than %d bytes.", MaxRequest)
	}
	block, remaining := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" || len(bytes.TrimSpace(remaining)) > 0 {
		return Request{}, errors.New("The csr must be one PEM block, CERTIFICATE REQUEST.")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return Request{}, errors.New("The csr is not a certificate signing request (PKCS #10).")
	}
	if problem := weakness(csr); problem != "" {
		return Request{}, errors.New(problem)
	}
	if err := csr.CheckSignature(); err != nil {
		return Request{}, errors.New("The csr is not signed by its own key.")
	}
	return Request{csr}, nil
}

func weakness(csr *x509.CertificateRequest) string {
	switch csr.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		return "The csr is signed with MD5 or SHA-1; use SHA-256 or better."
	}
	switch key := csr.PublicKey.(type) {
	case *rsa.PublicKey:
		switch bits := key.N.BitLen(); {
		case bits < 2048:
			return fmt.Sprintf("The csr has an RSA key of %d bits; use 2048 or more.", bits)
		case bits > 8192:
			return fmt.Sprintf("The csr has an RSA key of %d bits; use 8192 or less.", bits)
		case key.E < 65537:
			return fmt.Sprintf("The csr has an RSA key with the public exponent %d; use 65537 or more.", key.E)
		}
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() && key.Curve != elliptic.P521() {
			return "The csr has an elliptic curve key that is not on P-256, P-384 or P-521."
		}
	case ed25519.PublicKey:
	default:
		return "The csr has a key that is not RSA, ECDSA or Ed25519."
	}
	return ""
}
