package carrier

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// claims are the claims of a signed webhook's token that are checked.
type claims struct {
	IssuedAt    float64 `json:"iat"` // seconds since 1970
	Expires     float64 `json:"exp"`
	PayloadHash string  `json:"payload_hash"` // hex SHA-256
}

// isJWT reports whether a credential is a signed JSON Web Token.
func isJWT(text string) bool { return strings.Count(text, ".") == 2 && strings.HasPrefix(text, "eyJ") }

// verifyJWT returns the claims of a current token that is signed with HMAC-SHA256 (RFC
// 7515, HS256; no other algorithm).
func verifyJWT(token, secret string, now time.Time) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, fmt.Errorf("%w: the token", errUnread)
	}
	var head struct {
		Algorithm string `json:"alg"`
	}
	if err := segment(parts[0], &head); err != nil || head.Algorithm != "HS256" {
		return c, fmt.Errorf("%w: the token's algorithm is not HS256", errUnread)
	}
	sum, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[2], "="))
	if err != nil || subtle.ConstantTimeCompare(sum, mac(sha256.New, secret, parts[0]+"."+parts[1])) != 1 {
		return c, errSignature
	}
	if err := segment(parts[1], &c); err != nil {
		return c, fmt.Errorf("%w: the token's claims", errUnread)
	}
	if c.Expires != 0 && now.After(timeOfSeconds(c.Expires).Add(maxSkew)) {
		return c, errStale
	}
	if age := now.Sub(timeOfSeconds(c.IssuedAt)); age > maxAge || age < -maxSkew {
		return c, errStale
	}
	return c, nil
}

func segment(part string, into any) error {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// timeOfSeconds returns the time of a number of seconds since 1970; the zero time if it
// is out of range.
func timeOfSeconds(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<38) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
