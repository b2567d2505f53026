package netserver

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// disruptiveClaims are the claims of a token that matter. Times are in seconds
// since 1970.
type disruptiveClaims struct {
	Checksum       string  `json:"checksum"`
	ChecksumSHA256 string  `json:"checksum_sha256"`
	Expires        float64 `json:"exp"`
	Issued         float64 `json:"iat"`
}

// VerifyDisruptive checks the header X-Dt-Signature of Disruptive
// Technologies: a JSON Web Token signed with HMAC SHA-256 over the secret,
// whose checksum is that of the body as it was sent. No other algorithm is
// believed, whatever the token says of itself.
//
// The error is ErrUnsigned, ErrSignature or ErrStale.
func VerifyDisruptive(token string, body []byte, secret string, now time.Time) error {
	if token == "" {
		return ErrUnsigned
	}
	claims, err := openDisruptive(token, secret)
	if err != nil {
		return err
	}
	if !claims.cover(body) {
		return fmt.Errorf("%w: the checksum is not the body's", ErrSignature)
	}
	return claims.current(now)
}

// openDisruptive returns the claims of a token whose signature is right.
func openDisruptive(token, secret string) (*disruptiveClaims, error) {
	signed, signature, _ := cutLast(token, ".")
	header, payload, found := strings.Cut(signed, ".")
	if !found || secret == "" || strings.Contains(payload, ".") {
		return nil, ErrSignature
	}
	var h struct {
		Alg string `json:"alg"`
	}
	if !part(header, &h) || h.Alg != "HS256" {
		return nil, fmt.Errorf("%w: its algorithm is not HS256", ErrSignature)
	}
	sent, err := base64.RawURLEncoding.DecodeString(signature)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	if err != nil || !hmac.Equal(sent, mac.Sum(nil)) {
		return nil, ErrSignature
	}
	var c disruptiveClaims
	if !part(payload, &c) {
		return nil, fmt.Errorf("%w: its claims are not JSON", ErrSignature)
	}
	return &c, nil
}

func cutLast(s, sep string) (prefix, cursor string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// part reads one part of a token.
func part(s string, target any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && json.Unmarshal(raw, target) == nil
}

// cover compares the checksum: SHA-1, as the tokens known have it, else the
// SHA-256 that newer documents name.
func (c *disruptiveClaims) cover(body []byte) bool {
	if c.Checksum != "" {
		sum := sha1.Sum(body)
		return hexEqual(c.Checksum, sum[:])
	}
	sum := sha256.Sum256(body)
	return hexEqual(c.ChecksumSHA256, sum[:])
}

// current allows for clocks that differ. A token without an end is none.
func (c *disruptiveClaims) current(now time.Time) error {
	seconds := float64(now.UnixMilli()) / 1000
	switch skew := maxSkew.Seconds(); {
	case c.Expires == 0 || seconds > c.Expires+skew:
		return fmt.Errorf("%w: it has expired", ErrStale)
	case c.Issued > seconds+skew:
		return fmt.Errorf("%w: it was issued in the future", ErrStale)
	}
	return nil
}
