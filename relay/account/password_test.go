package account

import (
	"strings"
	"testing"
	"time"
)

func TestPasswords(t *testing.T) {
	sum := HashToken("secret")
	hash, err := HashPassword(sum)
	if err != nil || !IsPasswordHash(hash) || strings.Contains(hash, sum) {
		t.Fatalf("%s, %v", hash, err)
	}
	began := time.Now()
	ok, err := VerifyPassword(hash, sum)
	if err != nil || !ok {
		t.Errorf("the password: %v, %v", ok, err)
	}
	t.Logf("verified in %s", time.Since(began))
	if ok, err := VerifyPassword(hash, HashToken("Secret")); err != nil || ok {
		t.Errorf("another password: %v, %v", ok, err)
	}
	if again, err := HashPassword(sum); err != nil || again == hash {
		t.Errorf("hashed again it is the same, %v", err)
	}
	if ok, err := VerifyPassword(NobodysHash(), sum); err != nil || ok {
		t.Errorf("nobody's: %v, %v", ok, err)
	}
}

// A hash of a known answer: python3 -c 'import hashlib, base64; print(base64.b64encode(hashlib.pbkdf2_hmac("sha256",
// hashlib.sha256(b"secret").hexdigest().encode(), b"saltsaltsaltsalt", 1000)))'
func TestPasswordOfAnotherHand(t *testing.T) {
	const hash = "pbkdf2-sha256:1000:c2FsdHNhbHRzYWx0c2FsdA:hO8WvE5zsUJvI7rHiDyAOad/fZeXUf+igGxbKYMi8D4"
	if ok, err := VerifyPassword(hash, HashToken("secret")); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestStoredHashesThatAreNone(t *testing.T) {
	const good = "pbkdf2-sha256:1000:c2FsdHNhbHRzYWx0c2FsdA:"
	key := strings.Repeat("A", 43)
	for name, hash := range map[string]string{
		"nothing":         "",
		"a plain text":    "secret",
		"another prefix":  strings.Replace(good, "256", "512", 1) + key,
		"a part too many": good + key + ":x",
		"no rounds":       strings.Replace(good, "1000", "0", 1) + key,
		"too many rounds": strings.Replace(good, "1000", "999999999", 1) + key,
		"no base64":       strings.Replace(good, "c2Fs", "c!Fs", 1) + key,
		"a short key":     good + key[:20],
	} {
		t.Run(name, func(t *testing.T) {
			if ok, err := VerifyPassword(hash, "x"); err == nil || ok || IsPasswordHash(hash) {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
}
