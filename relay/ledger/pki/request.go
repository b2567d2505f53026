package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// MaxRequest is how long a request may be, in bytes of PEM.
const MaxRequest = 16 << 10

// Request is a request whose proof of possession holds and whose key is strong.
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
		return Request{}, errors.New("The csr is not signed by the key it names.")
	}
	return Request{csr}, nil
}

// weakness returns why a key or its signature is refused.
func weakness(csr *x509.CertificateRequest) string {
	switch csr.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		return "The csr is signed over MD5 or SHA-1, expected SHA-256 or better."
	}
	switch key := csr.PublicKey.(type) {
	case *rsa.PublicKey:
		return weakRSA(key)
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

func weakRSA(key *rsa.PublicKey) string {
	switch bits := key.N.BitLen(); {
	case bits < 2048:
		return fmt.Sprintf("The csr has an RSA key of %d bits, expected 2048 or more.", bits)
	case bits > 8192:
		return fmt.Sprintf("The csr has an RSA key of %d bits, expected 8192 or less.", bits)
	case key.E < 65537:
		return fmt.Sprintf("The csr has an RSA key with the public exponent %d, expected 65537 or more.", key.E)
	}
	return ""
}
