package account

import "testing"

// FuzzParseHash: a stored hash that is taken is as it was written, and costs no more
// than is allowed.
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
		if h.String() != text || h.memory > maxMemory || h.passes > maxPasses || len(h.key) != keyLength {
			t.Errorf("%q is taken as %+v", text, h)
		}
	})
}
