package account

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Login is a username of the SOAP interface and whose it is.
type Login struct {
	Username string `json:"username"`
	Account  ID     `json:"account"`
	// Password is what HashPassword made of the password.
	Password string `json:"password"`
}

// rounds is how often a password is hashed: people choose passwords, and those
// can be guessed when a hash is cheap. Some 50 to 100 ms.
const rounds = 210_000

// passwordPrefix begins what HashPassword returns.
const passwordPrefix = "pbkdf2-sha256:"

// HashPassword returns what a password is stored as: PBKDF2 with SHA-256 over
// the lower-case hex SHA-256 of the password, which is all that an inventory
// keeps of it, and a salt of its own each time.
func HashPassword(sum string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails, see crypto/rand
	key, err := stretch(sum, salt, rounds)
	if err != nil {
		return "", err
	}
	return storedHash(salt, key), nil
}

// IsPasswordHash reports whether a text is what HashPassword returns.
func IsPasswordHash(text string) bool { _, err := parseHash(text); return err == nil }

// VerifyPassword reports whether a password, as the lower-case hex SHA-256 of
// its text, is the one that was hashed. It takes as long as HashPassword, and no
// longer for a password that is nearly right.
func VerifyPassword(hash, sum string) (bool, error) {
	h, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	got, err := stretch(sum, h.salt, h.rounds)
	return err == nil && subtle.ConstantTimeCompare(got, h.key) == 1, err
}

// passwordHash is what a stored hash holds.
type passwordHash struct {
	rounds    int
	salt, key []byte
}

func parseHash(text string) (h passwordHash, err error) {
	rest, ok := strings.CutPrefix(text, passwordPrefix)
	fields := strings.Split(rest, ":")
	if !ok || len(fields) != 3 {
		return h, fmt.Errorf("password: the stored hash is not %sROUNDS:SALT:KEY", passwordPrefix)
	}
	if h.rounds, err = strconv.Atoi(fields[0]); err != nil || h.rounds < 1 || h.rounds > 10*rounds {
		return h, fmt.Errorf("password: the stored hash has %q rounds", fields[0])
	}
	if h.salt, err = base64.RawStdEncoding.DecodeString(fields[1]); err != nil {
		return h, fmt.Errorf("password: the stored salt: %w", err)
	}
	if h.key, err = base64.RawStdEncoding.DecodeString(fields[2]); err != nil || len(h.key) != sha256.Size {
		return h, fmt.Errorf("password: the stored key is not %d bytes of base64", sha256.Size)
	}
	return h, nil
}

func stretch(sum string, salt []byte, n int) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, sum, salt, n, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("password: %w", err)
	}
	return key, nil
}

// NobodysHash returns a hash that no password has, to be compared with where a
// username is not known: the answer takes as long as for one that is.
func NobodysHash() string {
	random := make([]byte, 16+sha256.Size)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	return storedHash(random[:16], random[16:])
}

func storedHash(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%s%d:%s:%s", passwordPrefix, rounds, b64.EncodeToString(salt), b64.EncodeToString(key))
}
