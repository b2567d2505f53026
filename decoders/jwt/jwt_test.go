package jwt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// token returns a token with a header and claims, signed with a secret.
func token(header, claims, secret string) string {
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestVerify(t *testing.T) {
	const header, claims = `{"alg":"HS256"}`, `{"sub":"a"}`
	for _, c := range []struct{ name, token, secret, want string }{
		{"signed with the secret", token(header, claims, "s3cret"), "s3cret", ""},
		{"padded, although RFC 7515 forbids it", token(header, claims, "s3cret") + "=", "s3cret", ""},
		{"signed with another secret", token(header, claims, "other"), "s3cret", "the token's signature does not match"},
		{"signed with the empty secret", token(header, claims, ""), "", "the token's signature does not match"},
		{"with the algorithm none", token(`{"alg":"none"}`, claims, "s3cret"), "s3cret", "the token's algorithm is not HS256"},
		{"signed with another algorithm", token(`{"alg":"RS256"}`, claims, "s3cret"), "s3cret", "the token's algorithm is not HS256"},
		{"with two parts", "a.b", "s3cret", "the token does not have three parts"},
		{"with four parts", token(header, claims, "s3cret") + ".x", "s3cret", "the token does not have three parts"},
		{"with claims that are not JSON", token(header, "claims", "s3cret"), "s3cret", "the token's claims: invalid character 'c' looking for beginning of value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var parsed struct {
				Subject string `json:"sub"`
			}
			got := ""
			if err := Verify(c.token, c.secret, &parsed); err != nil {
				got = err.Error()
			} else {
				relaytest.Equal(t, "the subject", parsed.Subject, "a")
			}
			relaytest.Equal(t, "the error", got, c.want)
		})
	}
}

// FuzzVerify checks that a token is accepted only if it was signed with the secret.
func FuzzVerify(f *testing.F) {
	f.Add(token(`{"alg":"HS256"}`, `{}`, "other"))
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		var claims any
		if err := Verify(text, "a secret that the fuzzer does not find", &claims); err == nil {
			t.Fatalf("%q is accepted", text)
		}
	})
}
