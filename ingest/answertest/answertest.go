// Package answertest compares texts in tests whose whole is not known or does not
// matter: a part must be there, or must not be. Each failure names the part and shows
// the text.
package answertest

import (
	"strings"
	"testing"
)

// Begins fails the test, and lets it go on, unless the text has the prefix; what names
// the text.
func Begins(t testing.TB, what, text, prefix string) {
	t.Helper()
	if !strings.HasPrefix(text, prefix) {
		t.Errorf("%s does not begin with %q:\n%s", what, prefix, text)
	}
}

// Contains fails the test, and lets it go on, for every part that the text lacks; what
// names the text.
func Contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// Lacks fails the test, and lets it go on, for every part that the text contains; what
// names the text.
func Lacks(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s contains %q:\n%s", what, part, text)
		}
	}
}
