package merkle

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
)

// seedOf reads the public key out of the last part of a private key's text: the
// base64 of the algorithm, 1 for Ed25519, and the seed.
func seedOf(text string) (ed25519.PublicKey, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 1+ed25519.SeedSize || b[0] != 1 {
		return nil, errors.New("head: key: not an Ed25519 key")
	}
	return ed25519.NewKeyFromSeed(b[1:]).Public().(ed25519.PublicKey), nil
}
