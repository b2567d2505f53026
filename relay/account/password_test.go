package account

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestPasswords(t *testing.T) {
	sum := HashToken("secret")
	for name, hashOf := range map[string]func(string) string{"chosen": HashPassword, "generated": HashGenerated} {
		t.Run(name, func(t *testing.T) {
			hash := hashOf(sum)
			if !IsPasswordHash(hash) || strings.Contains(hash, sum) {
				t.Fatalf("hash = %s, want a password hash without the sum", hash)
			}
			relaytest.Equal(t, "whether the password matches", relaytest.Must(VerifyPassword(hash, sum))(t), true)
			relaytest.Equal(t, "whether another password matches", relaytest.Must(VerifyPassword(hash, HashToken("Secret")))(t), false)
			if hashOf(sum) == hash {
				t.Error("two hashes of a password are equal")
			}
		})
	}
	relaytest.Equal(t, "whether the password matches the dummy hash", relaytest.Must(VerifyPassword(DummyHash(), sum))(t), false)
}

// PHP created the hash: password_hash(hash("sha256", "secret"), PASSWORD_ARGON2ID,
// ["memory_cost" => 64, "time_cost" => 1, "threads" => 1]).
func TestAHashFromPHPIsVerified(t *testing.T) {
	const hash = "$argon2id$v=19$m=64,t=1,p=1$dEFmODVkaUFFWFZ1RnFsTQ$Z24gNO2kYkRvxYA47SuI7hAE8Jzbu9lJDSqkb9j0NIo"
	relaytest.Equal(t, "whether the password matches", relaytest.Must(VerifyPassword(hash, HashToken("secret")))(t), true)
}

func TestInvalidStoredHashesAreRefused(t *testing.T) {
	const prefix = "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
	key := strings.Repeat("A", 43)
	if !IsPasswordHash(prefix + key) {
		t.Fatal("a valid hash is refused")
	}
	for name, hash := range map[string]string{
		"empty":           "",
		"plain text":      "secret",
		"another prefix":  strings.Replace(prefix, "2id", "2i", 1) + key,
		"another version": strings.Replace(prefix, "19", "16", 1) + key,
		"additional part": prefix + key + "$x",
		"no memory":       strings.Replace(prefix, "64", "0", 1) + key,
		"too much memory": strings.Replace(prefix, "64", "4000000000", 1) + key,
		"too many passes": strings.Replace(prefix, "t=1", "t=65", 1) + key,
		"two lanes":       strings.Replace(prefix, "p=1", "p=2", 1) + key,
		"twelve lanes":    strings.Replace(prefix, "p=1", "p=12", 1) + key,
		"negative passes": strings.Replace(prefix, "t=1", "t=-1", 1) + key,
		"invalid base64":  strings.Replace(prefix, "c2Fs", "c!Fs", 1) + key,
		"short key":       prefix + key[:20],
	} {
		t.Run(name, func(t *testing.T) {
			ok, err := VerifyPassword(hash, "x")
			if err == nil {
				t.Error("VerifyPassword accepted the hash")
			}
			relaytest.Equal(t, "whether the password matches the invalid hash", ok, false)
			relaytest.Equal(t, "whether it is a password hash", IsPasswordHash(hash), false)
		})
	}
}

// FuzzParseHash checks that an accepted hash is encoded unchanged and that its cost is within the
// limits.
func FuzzParseHash(f *testing.F) {
	for _, seed := range []string{"", passwordPrefix, "$argon2id$v=19$m=65536,t=3,p=1$YWJjZGVmZ2hpamtsbW5vcA$YWJjZGVmZ2hpamtsbW5vcGFiY2RlZmdoaWprbG1ub3A",
		"$argon2id$v=19$m=4294967295,t=99,p=1$$", "$argon2id$v=19$m=1,t=1,p=2$YQ$YQ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err != nil {
			return
		}
		relaytest.Equal(t, "the encoded hash", h.String(), text)
		if h.memory > maxMemory || h.passes > maxPasses || len(h.key) != keyLength {
			t.Errorf("%q was accepted with memory %d, %d passes and a key of %d bytes", text, h.memory, h.passes, len(h.key))
		}
	})
}
