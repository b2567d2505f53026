package email

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func rsaKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	relaytest.NoError(t, err)
	return key
}

func ed25519Key(t testing.TB) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	relaytest.NoError(t, err)
	return key
}

// record returns the TXT record of a key.
func record(t *testing.T, key crypto.Signer) string {
	t.Helper()
	if public, ok := key.Public().(ed25519.PublicKey); ok {
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	relaytest.NoError(t, err)
	return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)
}

// signedMail sends a mail to a server and returns the mail that the server received.
func signedMail(t *testing.T, key crypto.Signer) string {
	t.Helper()
	p := startPeer(t, withoutTLS, &peer{})
	c := newClient(t, Options{Addr: p.addr, TLS: None, DKIM: &DKIM{Domain: "penstock.test", Selector: "gw1", Key: key}})
	r, err := c.Send(t.Context(), outbox.Mail{
		To: "a@example.test", Subject: "SMS from Zoë", Text: "Grüße\n\n.\ntrailing  \n\n", MessageID: "d1@penstock.test",
		Header: map[string]string{"Content-class": "MS-OMS-SMS"},
	})
	expectClass(t, "the mail", r, err, delivery.Delivered)
	if len(p.received()) != 1 {
		t.Fatalf("%d mails arrived, want 1", len(p.received()))
	}
	return p.received()[0]
}

// verifiers returns the verifiers of two implementations of DKIM: of the library that signs, in Go,
// and of dkimpy, in Python.
func verifiers() map[string]func(t *testing.T, mail, record string) bool {
	return map[string]func(t *testing.T, mail, record string) bool{
		"go-msgauth": func(t *testing.T, mail, record string) bool {
			results, err := dkim.VerifyWithOptions(strings.NewReader(mail), &dkim.VerifyOptions{LookupTXT: func(domain string) ([]string, error) {
				if domain != "gw1._domainkey.penstock.test" {
					return nil, errors.New("no such record")
				}
				return []string{record}, nil
			}})
			return err == nil && len(results) == 1 && results[0].Err == nil && results[0].Domain == "penstock.test" && len(results[0].HeaderKeys) >= 9
		},
		"dkimpy": dkimpy,
	}
}

// dkimpy verifies with dkimpy, the Debian package python3-dkim.
func dkimpy(t *testing.T, mail, record string) bool {
	t.Helper()
	if _, err := exec.LookPath("dkimverify"); err != nil {
		const reason = "dkimverify is not installed (Debian: apt-get install python3-dkim)"
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skip(reason)
		}
		t.Fatal(reason)
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/verify.py", "gw1._domainkey.penstock.test", record)
	cmd.Stdin = strings.NewReader(mail)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("dkimpy: %v: %s", err, &stderr)
	}
	return strings.TrimSpace(string(stdout)) == "verified"
}

func TestDKIMSignaturesAreVerified(t *testing.T) {
	key, otherKey := rsaKey(t), rsaKey(t)
	mail := signedMail(t, key)
	if !strings.HasPrefix(mail, "DKIM-Signature: ") {
		t.Fatalf("the mail does not begin with a signature: %s", mail)
	}
	for name, verify := range verifiers() {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				name, mail, record string
				want               bool
			}{
				{"unchanged", mail, record(t, key), true},
				{"with another text", strings.Replace(mail, "trailing", "changed", 1), record(t, key), false},
				{"with another recipient", strings.Replace(mail, "<a@example.test>", "<b@example.test>", 1), record(t, key), false},
				{"with another further header", strings.Replace(mail, "MS-OMS-SMS", "MS-OMS-MMS", 1), record(t, key), false},
				{"with another key published", mail, record(t, otherKey), false},
			} {
				if got := verify(t, c.mail, c.record); got != c.want {
					t.Errorf("%s: verified = %v, want %v", c.name, got, c.want)
				}
			}
		})
	}
}

func TestAnEd25519SignatureIsVerified(t *testing.T) {
	key := ed25519Key(t)
	if !verifiers()["go-msgauth"](t, signedMail(t, key), record(t, key)) {
		t.Error("the signature was not verified")
	}
}

func pkcs8(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	relaytest.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestParseKeyReadsEveryFormat(t *testing.T) {
	key := rsaKey(t)
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key.(*rsa.PrivateKey))})
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	relaytest.NoError(t, err)
	for name, c := range map[string]struct {
		text []byte
		ok   bool
	}{
		"RSA in PKCS #8":      {pkcs8(t, key), true},
		"RSA in PKCS #1":      {pkcs1, true},
		"Ed25519":             {pkcs8(t, ed25519Key(t)), true},
		"text before the key": {append([]byte("selector gw1\n"), pkcs1...), true},
		"an ECDSA key":        {pkcs8(t, ecdsaKey), false},
		"empty":               {nil, false},
		"not PEM":             {[]byte("secret"), false},
		"PEM without a key":   {[]byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"), false},
	} {
		got, err := ParseKey(c.text)
		if (err == nil) != c.ok || c.ok && got == nil {
			t.Errorf("%s: error = %v, want success: %t", name, err, c.ok)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error contains the key: %v", name, err)
		}
	}
}

func TestInvalidDomainsAndSelectorsAreRefused(t *testing.T) {
	key := rsaKey(t)
	for _, d := range []DKIM{{Domain: "a.test", Key: key}, {Selector: "s", Key: key}, {Domain: "a.test", Selector: "s"}, {Domain: "a.test; t=y", Selector: "s", Key: key}, {Domain: "a.test", Selector: "s\r\nX: y", Key: key}} {
		if _, err := New(Options{Addr: "mx.test:25", From: "a@b.test", DKIM: &d}); err == nil {
			t.Errorf("the selector %q and the domain %q were accepted", d.Selector, d.Domain)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(pkcs8(f, ed25519Key(f)))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		d := DKIM{Domain: "a.test", Selector: "s", Key: key}
		if _, err := d.sign([]byte("From: <a@a.test>\r\n\r\nx\r\n")); err != nil {
			t.Errorf("cannot sign with a parsed key: %v", err)
		}
	})
}
