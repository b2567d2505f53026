package user_test

import (
	"testing"

	"github.com/penstock/penstock/relay/user"
)

// FuzzParseName: a name that is taken is taken again as it is, and has no blanks.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"", "ada", " Ada@Example.com ", "admin token", "a\x00b", "\u0130", "\u212a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := user.ParseName(text)
		if !ok {
			return
		}
		if again, ok := user.ParseName(name); !ok || again != name {
			t.Errorf("%q is %q, which is %q, %v", text, name, again, ok)
		}
		for _, c := range name {
			if c <= ' ' || c > '~' {
				t.Errorf("the name %q has %q", name, c)
			}
		}
	})
}
