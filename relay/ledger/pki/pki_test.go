package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// openssl runs openssl in dir and returns its output.
func openssl(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("openssl is not installed (Debian: apt-get install openssl)")
	}
	cmd := exec.Command("openssl", args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// csr returns a certificate signing request that openssl creates with args.
func csr(t testing.TB, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	openssl(t, dir, append([]string{"req", "-new", "-nodes", "-keyout", "key.pem", "-out", "r.csr", "-subj", "/CN=anybody/O=whoever"}, args...)...)
	b, err := os.ReadFile(filepath.Join(dir, "r.csr"))
	relaytest.NoError(t, err)
	return b
}

func subject() Subject {
	return Subject{TokenID: strings.Repeat("ab", 32), LedgerHash: strings.Repeat("cd", 32), From: time.Now(), Until: time.Now().Add(time.Hour)}
}

func TestOpensslVerifiesIssuedCertificates(t *testing.T) {
	ca, key, err := NewAuthority("Assets "+strings.Repeat("é", 80), strings.Repeat("cd", 32), time.Now())
	relaytest.NoError(t, err)
	authority, err := LoadAuthority(ca, key)
	relaytest.NoError(t, err)
	for name, args := range map[string][]string{
		"RSA 3072": {"-newkey", "rsa:3072"}, "P-256": {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"}, "Ed25519": {"-newkey", "ed25519"},
		"P-521": {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRequest(csr(t, args...))
			relaytest.NoError(t, err)
			for _, until := range []time.Time{subject().Until, {}} {
				s := subject()
				s.Until = until
				cert, err := authority.Issue(r, s)
				relaytest.NoError(t, err)
				fingerprint, err := Fingerprint(cert)
				relaytest.NoError(t, err)
				verified(t, ca, cert, fingerprint, s)
			}
		})
	}
}

// verified checks a certificate against its authority and its subject with openssl.
func verified(t *testing.T, ca, cert, fingerprint string, s Subject) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"ca.pem": ca, "cert.pem": cert} {
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	openssl(t, dir, "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca.pem", "cert.pem")
	text := openssl(t, dir, "x509", "-in", "cert.pem", "-noout", "-text")
	for _, want := range []string{"CN = " + s.TokenID, "URI:" + s.URN(), "CA:FALSE"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "anybody") || strings.Contains(text, "whoever") {
		t.Error("the certificate has the subject of the request")
	}
	print := openssl(t, dir, "x509", "-in", "cert.pem", "-noout", "-fingerprint", "-sha256")
	if got := strings.ToLower(strings.ReplaceAll(print, ":", "")); !strings.Contains(got, fingerprint) {
		t.Errorf("fingerprint = %s, want %s", fingerprint, got)
	}
	if end := openssl(t, dir, "x509", "-in", "cert.pem", "-noout", "-enddate"); s.Until.IsZero() != strings.Contains(end, "9999") {
		t.Errorf("end date = %s, want %s (no end: 9999)", end, s.Until)
	}
}

func TestWeakRequestsAreRefused(t *testing.T) {
	good := csr(t, "-newkey", "ed25519")
	block, _ := pem.Decode(good)
	forged := bytes.Clone(block.Bytes)
	forged[len(forged)-1] ^= 1
	for name, tc := range map[string]struct {
		request []byte
		want    string
	}{
		"RSA of 1024 bits":           {csr(t, "-newkey", "rsa:1024"), "RSA key of 1024 bits"},
		"an RSA exponent of 3":       {csr(t, "-newkey", "rsa:2048", "-pkeyopt", "rsa_keygen_pubexp:3"), "public exponent 3"},
		"SHA-1":                      {csr(t, "-newkey", "rsa:2048", "-sha1"), "SHA-1"},
		"P-224":                      {csr(t, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp224r1"), "not on P-256"},
		"Ed448":                      {csr(t, "-newkey", "ed448"), "not RSA, ECDSA or Ed25519"},
		"invalid signature":          {pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: forged}), "not signed by its own key"},
		"PEM label of a certificate": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), "one PEM block"},
		"two requests":               {append(bytes.Clone(good), good...), "one PEM block"},
		"not PEM":                    {[]byte("hello"), "one PEM block"},
		"empty PEM block":            {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"}), "not a certificate signing request"},
		"too long":                   {bytes.Repeat([]byte("a"), MaxRequest+1), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseRequest(tc.request); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestInvalidAuthoritiesAreRefused(t *testing.T) {
	ca, key, err := NewAuthority("a", "b", time.Now())
	relaytest.NoError(t, err)
	for name, tc := range map[string]struct {
		cert string
		key  []byte
	}{"certificate that is not PEM": {"x", key}, "empty key": {ca, nil}, "empty certificate": {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"})), key}} {
		if _, err := LoadAuthority(tc.cert, tc.key); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzParseRequest checks that accepted requests prove possession of a strong key.
func FuzzParseRequest(f *testing.F) {
	f.Add(csr(f, "-newkey", "ed25519"))
	f.Add(csr(f, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRequest(text)
		if err != nil {
			return
		}
		if request, err := x509.ParseCertificateRequest(r.csr.Raw); err != nil || request.CheckSignature() != nil || weakness(request) != "" {
			t.Fatalf("ParseRequest accepted %q: error %v", text, err)
		}
	})
}
