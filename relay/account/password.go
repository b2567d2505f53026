package account

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/penstock/penstock/relay"
)

// Login is a username of the SOAP interface and its account.
type Login struct {
	Username string          `json:"username"`
	Account  relay.AccountID `json:"account"`
	// Password is a result of HashPassword or HashGenerated.
	Password string `json:"password"`
}

// The parameters of hashes. Hashing must be expensive because passwords that people choose
// can be guessed: 19 MiB and two passes take some 30 ms.
const (
	hashMemory = 19 << 10 // KiB
	hashPasses = 2
	saltLength = 16
	keyLength  = 32
	maxMemory  = 1 << 20 // KiB, of a stored hash
	minMemory  = 8       // KiB, the minimum of Argon2 with one lane
	maxPasses  = 64
)

// passwordPrefix is the beginning of a stored hash.
const passwordPrefix = "$argon2id$v="

// HashPassword returns the hash of a password for storage: Argon2id (RFC 9106), in the
// string format of the Password Hashing Competition, with a new salt. sum is the
// lower-case hex SHA-256 of the password; a sealed inventory contains only this sum.
func HashPassword(sum string) string {
	return hashPassword(sum, hashMemory, hashPasses)
}

// HashGenerated hashes like HashPassword, at the lowest cost. It is intended for passwords of at
// least 128 random bits, which cannot be guessed.
func HashGenerated(sum string) string {
	return hashPassword(sum, minMemory, 1)
}

// IsGenerated reports whether text is a result of HashGenerated.
func IsGenerated(text string) bool {
	h, err := parseHash(text)
	return err == nil && h.memory == minMemory
}

func hashPassword(sum string, memory, passes uint32) string {
	h := passwordHash{memory: memory, passes: passes, salt: random(saltLength)}
	h.key = h.derive(sum)
	return h.String()
}

// DummyHash returns a hash that no password matches. A caller verifies a password against it
// if the username is unknown, so that the response takes as long as for a known username.
func DummyHash() string {
	return passwordHash{memory: hashMemory, passes: hashPasses, salt: random(saltLength), key: random(keyLength)}.String()
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return b
}

// IsPasswordHash reports whether text is a result of HashPassword or HashGenerated.
func IsPasswordHash(text string) bool {
	_, err := parseHash(text)
	return err == nil
}

// VerifyPassword reports whether hash is a hash of sum, the lower-case hex SHA-256 of a password.
// Its duration does not depend on the password. It returns an error if the
// stored hash is invalid.
func VerifyPassword(hash, sum string) (bool, error) {
	h, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(h.derive(sum), h.key) == 1, nil
}

type passwordHash struct {
	memory, passes uint32
	salt, key      []byte
}

func (h passwordHash) derive(sum string) []byte {
	return argon2.IDKey([]byte(sum), h.salt, h.passes, h.memory, 1, keyLength)
}

// String returns the hash as it is stored.
func (h passwordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%s%d$m=%d,t=%d,p=1$%s$%s", passwordPrefix, argon2.Version, h.memory, h.passes, b64.EncodeToString(h.salt), b64.EncodeToString(h.key))
}

func parseHash(text string) (h passwordHash, err error) {
	invalid := errors.New("password: the stored hash is not an Argon2id hash with one lane")
	fields := strings.Split(text, "$")
	if !strings.HasPrefix(text, passwordPrefix) || len(fields) != 6 {
		return h, invalid
	}
	if _, err := fmt.Sscanf(fields[3], "m=%d,t=%d,p=1", &h.memory, &h.passes); err != nil {
		return h, fmt.Errorf("password: the stored hash's costs: %w", err)
	}
	if h.salt, err = base64.RawStdEncoding.DecodeString(fields[4]); err != nil {
		return h, fmt.Errorf("password: the stored salt: %w", err)
	}
	if h.key, err = base64.RawStdEncoding.DecodeString(fields[5]); err != nil {
		return h, fmt.Errorf("password: the stored key: %w", err)
	}
	if len(h.key) != keyLength || h.memory == 0 || h.memory > maxMemory || h.passes == 0 || h.passes > maxPasses || h.String() != text {
		return h, invalid
	}
	return h, nil
}
