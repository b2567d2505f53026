package netserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// The reasons for which a signed post is not believed. Their text may be
// shown: none holds a secret or what was expected.
var (
	ErrUnsigned  = errors.New("netserver: the signature is missing")
	ErrSignature = errors.New("netserver: the signature does not match")
	ErrStale     = errors.New("netserver: the signature has expired")
)

// maxSkew is how far the clocks of a sender and of this machine may differ.
const maxSkew = 5 * time.Minute

// hexEqual compares a digest with the hex digits that were sent, of any case,
// in constant time.
func hexEqual(sent string, digest []byte) bool {
	b, err := hex.DecodeString(sent)
	return err == nil && subtle.ConstantTimeCompare(b, digest) == 1
}

// VerifyKPN checks the header Things-Message-Token of KPN Things: the SHA-256,
// in hex, of the body as it was sent followed by the secret. It has no time:
// an intercepted post can be replayed, and only the frame's DedupID detects it.
func VerifyKPN(token string, body []byte, secret string) error {
	if token == "" {
		return ErrUnsigned
	}
	h := sha256.New()
	h.Write(body)
	h.Write([]byte(secret))
	if secret == "" || !hexEqual(token, h.Sum(nil)) {
		return ErrSignature
	}
	return nil
}

// fresh reports whether a moment lies near enough to now.
func fresh(t, now time.Time) error {
	if d := now.Sub(t); d > maxSkew || d < -maxSkew {
		return fmt.Errorf("%w: it was made at %s", ErrStale, t.UTC().Format(time.RFC3339))
	}
	return nil
}
