package sms

import (
	"testing"

	"github.com/warthog618/sms/encoding/gsm7"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want string
	}{
		"nothing":                                  {"", ""},
		"letters":                                  {"hello", "hello"},
		"at is zero":                               {"a\x00b", "a@b"},
		"umlauts and Greek":                        {"\x5b\x5c\x5e\x10\x7f", "ÄÖÜΔà"},
		"the euro takes two":                       {"\x1be5", "€5"},
		"brackets, braces, bar":                    {"\x1b<\x1b>\x1b(\x1b)\x1b@", "[]{}|"},
		"an escape before a letter is ignored":     {"\x1bA", "A"},
		"an escape before an escape is a space":    {"\x1b\x1bA", " A"},
		"an escape at the end is a space":          {"A\x1b", "A "},
		"line feed, carriage return and form feed": {"\n\r\x1b\n", "\n\r\f"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAlphabet().Decode([]byte(tc.in))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the text", got, tc.want)
		})
	}
}

func TestDecodeNamesTheInvalidOctet(t *testing.T) {
	_, err := NewAlphabet().Decode([]byte("ab\x80"))
	decoderstest.Refused(t, err, "gsm7", "", 2)
}

func TestEncodeRefusesCharactersOutsideTheAlphabet(t *testing.T) {
	for name, text := range map[string]string{
		"a small c with cedilla": "ç", "a tab": "\t", "a no-break space": "\u00a0", "a backtick": "`",
		"a typographic apostrophe": "it’s", "an emoji": "🎉", "broken UTF-8": "a\xff", "an escape": "\x1b",
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAlphabet()
			if _, err := a.Encode(text); err == nil {
				t.Error("encoded")
			}
			if a.Fits(text) {
				t.Error("fits")
			}
		})
	}
}

func TestEverySeptetIsEncodedAgain(t *testing.T) {
	a := NewAlphabet()
	for c := range byte(128) {
		if c == escape {
			continue
		}
		text, err := a.Decode([]byte{c})
		relaytest.NoError(t, err)
		back, err := a.Encode(text)
		if err != nil || string(back) != string([]byte{c}) {
			t.Errorf("%#02x: %q came back as %x, %v", c, text, back, err)
		}
	}
}

// FuzzDecode compares with the library, except for an escaped 0x0D, which the library decodes
// as a line feed.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"hello", "\x1be", "\x1b\x1b", "A\x1b", "\x1bA", "\x80", ""} {
		f.Add([]byte(s))
	}
	a := NewAlphabet()
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := a.Decode(data)
		if err != nil {
			return
		}
		if len(text) > 3*len(data) {
			t.Fatalf("%d octets became %d", len(data), len(text))
		}
		if want, err := gsm7.Decode(data); err != nil || string(want) != text && !hasCR2(data) {
			t.Fatalf("%x: got %q, the library says %q, %v", data, text, want, err)
		}
		if !a.Fits(text) {
			t.Fatalf("%q does not fit", text)
		}
		code, err := a.Encode(text)
		relaytest.NoError(t, err)
		if again, err := a.Decode(code); err != nil || again != text {
			t.Fatalf("%q came back as %q, %v", text, again, err)
		}
	})
}

// hasCR2 reports an escaped 0x0D, which TS 23.038 reserves for another use.
func hasCR2(data []byte) bool {
	for i := 1; i < len(data); i++ {
		if data[i-1] == escape && data[i] == 0x0D {
			return true
		}
	}
	return false
}
