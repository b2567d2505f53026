package account

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

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
