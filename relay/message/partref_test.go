package message

import (
	"testing"
)

func TestParsePartRefRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1-2", "1-2-3-4", "1-2-x", "x-2-3", "1-0-0", "1-2-255", "1-2--1", "01-2-3", "1-2-03", "1-2-+3"} {
		if p, ok := ParsePartRef(text); ok {
			t.Errorf("%q was read as %s", text, p.String())
		}
	}
}

func FuzzParsePartRef(f *testing.F) {
	f.Add("7-1001-0")
	f.Add("1--2-3")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePartRef(text); ok && p.String() != text {
			t.Errorf("%q became %q", text, p.String())
		}
	})
}
