package account

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestPasswords(t *testing.T) {
	sum := HashToken("secret")
	for name, of := range map[string]func(string) string{"chosen": HashPassword, "generated": HashGenerated} {
		t.Run(name, func(t *testing.T) {
			hash := of(sum)
			if !IsPasswordHash(hash) || strings.Contains(hash, sum) {
				t.Fatal(hash)
			}
			relaytest.Equal(t, "whether the password matches", relaytest.Must(VerifyPassword(hash, sum))(t), true)
			relaytest.Equal(t, "whether another password matches", relaytest.Must(VerifyPassword(hash, HashToken("Secret")))(t), false)
			if of(sum) == hash {
				t.Error("hashed again it is the same")
			}
		})
	}
	relaytest.Equal(t, "whether the password matches the dummy hash", relaytest.Must(VerifyPassword(DummyHash(), sum))(t), false)
}

// The hash is PHP's: password_hash(hash("sha256", "secret"), PASSWORD_ARGON2ID,
// ["memory_cost" => 64, "time_cost" => 1, "threads" => 1]).
func TestPasswordOfAnotherHand(t *testing.T) {
	const hash = "$argon2id$v=19$m=64,t=1,p=1$dEFmODVkaUFFWFZ1RnFsTQ$Z24gNO2kYkRvxYA47SuI7hAE8Jzbu9lJDSqkb9j0NIo"
	relaytest.Equal(t, "whether the password matches", relaytest.Must(VerifyPassword(hash, HashToken("secret")))(t), true)
}

func TestStoredHashesThatAreNone(t *testing.T) {
	const good = "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
	key := strings.Repeat("A", 43)
	if !IsPasswordHash(good + key) {
		t.Fatal("a good one is none")
	}
	for name, hash := range map[string]string{
		"nothing":         "",
		"a plain text":    "secret",
		"another prefix":  strings.Replace(good, "2id", "2i", 1) + key,
		"another version": strings.Replace(good, "19", "16", 1) + key,
		"a part too many": good + key + "$x",
		"no memory":       strings.Replace(good, "64", "0", 1) + key,
		"all memory":      strings.Replace(good, "64", "4000000000", 1) + key,
		"many passes":     strings.Replace(good, "t=1", "t=65", 1) + key,
		"two lanes":       strings.Replace(good, "p=1", "p=2", 1) + key,
		"twelve lanes":    strings.Replace(good, "p=1", "p=12", 1) + key,
		"no number":       strings.Replace(good, "t=1", "t=-1", 1) + key,
		"no base64":       strings.Replace(good, "c2Fs", "c!Fs", 1) + key,
		"a short key":     good + key[:20],
	} {
		t.Run(name, func(t *testing.T) {
			ok, err := VerifyPassword(hash, "x")
			if err == nil {
				t.Error("the hash was accepted")
			}
			relaytest.Equal(t, "whether the password is right", ok, false)
			relaytest.Equal(t, "whether it is a password hash", IsPasswordHash(hash), false)
		})
	}
}

// FuzzParseHash holds that a stored hash that is accepted is written again as it was
// read, and that its cost is within the limits.
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
		relaytest.Equal(t, "the hash, written again", h.String(), text)
		if h.memory > maxMemory || h.passes > maxPasses || len(h.key) != keyLength {
			t.Errorf("%q was accepted with memory %d, %d passes and a key of %d bytes", text, h.memory, h.passes, len(h.key))
		}
	})
}
