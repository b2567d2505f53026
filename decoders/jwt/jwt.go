// Package jwt verifies JSON Web Tokens (RFC 7519) that senders of webhooks sign with
// HMAC-SHA256 (HS256). It refuses other algorithms and an empty secret. It does not check
// whether the token has expired.
package jwt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrSignature means that the token was not signed with the secret.
var ErrSignature = errors.New("the token's signature does not match")

// Verify unmarshals the claims of a token into claims if the token is signed with the secret.
// The error is ErrSignature or names the part of the token that cannot be read. It never
// contains the secret or the expected signature.
func Verify(token, secret string, claims any) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("the token does not have three parts")
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	if err := readPart(parts[0], &header); err != nil || header.Algorithm != "HS256" {
		return errors.New("the token's algorithm is not HS256")
	}
	signature, err := decodePart(parts[2])
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if err != nil || secret == "" || !hmac.Equal(signature, mac.Sum(nil)) {
		return ErrSignature
	}
	if err := readPart(parts[1], claims); err != nil {
		return fmt.Errorf("the token's claims: %w", err)
	}
	return nil
}

func readPart(part string, target any) error {
	b, err := decodePart(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, target)
}

// decodePart decodes base64url. Some senders pad it, although RFC 7515 forbids padding.
func decodePart(part string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
}
