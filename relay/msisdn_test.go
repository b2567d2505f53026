package relay

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseMSISDN(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		ok         bool
	}{
		{"a British number", "447860000001", true},
		{"seven digits", "1234567", true},
		{"fifteen digits", "123456789012345", true},
		{"six digits", "123456", false},
		{"sixteen digits", "1234567890123456", false},
		{"a leading zero", "07860000001", false},
		{"a plus", "+447860000001", false},
		{"a letter", "44786000000a", false},
		{"digits of another script", "٤٤٧٨٦٠٠٠", false},
		{"an empty string", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseMSISDN(tc.text)
			if !tc.ok {
				relaytest.Equal(t, "the kind of error", KindOf(err), KindInvalid)
				return
			}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number", string(got), tc.text)
		})
	}
}

func TestNumberFrom(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
		ok               bool
	}{
		{"digits", "447860000001", "447860000001", true},
		{"a plus", "+447860000001", "447860000001", true},
		{"two zeros", "00447860000001", "447860000001", true},
		{"blanks, dashes and brackets", " +44 (7860) 000-001 ", "447860000001", true},
		{"a short code", "60777", "60777", true},
		{"a name is unchanged", " Bank 24 ", " Bank 24 ", false},
		{"a plus alone", "+", "+", false},
		{"zeros alone", "00", "00", false},
		{"an empty string", "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, ok := NumberFrom(tc.text); got != tc.want || ok != tc.ok {
				t.Errorf("NumberFrom(%q) = %q, %v, want %q, %v", tc.text, got, ok, tc.want, tc.ok)
			}
		})
	}
}

// FuzzNumberFrom checks that a number consists of digits, and that any other text is returned
// unchanged.
func FuzzNumberFrom(f *testing.F) {
	f.Add("+44 (7860) 000-001")
	f.Add("Bank")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := NumberFrom(s)
		if ok && !Digits(got) || !ok && got != s {
			t.Fatalf("NumberFrom(%q) = %q, %v", s, got, ok)
		}
	})
}
