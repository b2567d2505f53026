package sms

import (
	"testing"

	"github.com/warthog618/sms/encoding/gsm7"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		septets string
		want    string
	}{
		"no septets":                               {"", ""},
		"letters":                                  {"hello", "hello"},
		"the at sign is 0":                         {"a\x00b", "a@b"},
		"umlauts and Greek":                        {"\x5b\x5c\x5e\x10\x7f", "ÄÖÜΔà"},
		"the euro sign is two septets":             {"\x1be5", "€5"},
		"brackets, braces, bar":                    {"\x1b<\x1b>\x1b(\x1b)\x1b@", "[]{}|"},
		"an escape before a letter is ignored":     {"\x1bA", "A"},
		"an escape before an escape is a space":    {"\x1b\x1bA", " A"},
		"an escape at the end is a space":          {"A\x1b", "A "},
		"line feed, carriage return and form feed": {"\n\r\x1b\n", "\n\r\f"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAlphabet().Decode([]byte(tc.septets))
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
		"a typographic apostrophe": "it’s", "an emoji": "🎉", "invalid UTF-8": "a\xff", "an escape": "\x1b",
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAlphabet()
			if _, err := a.Encode(text); err == nil {
				t.Error("Encode returns no error")
			}
			if a.Fits(text) {
				t.Error("Fits returns true")
			}
		})
	}
}

func TestEverySeptetIsDecodedAndEncoded(t *testing.T) {
	a := NewAlphabet()
	for c := range byte(128) {
		if c == escape {
			continue
		}
		text, err := a.Decode([]byte{c})
		relaytest.NoError(t, err)
		encoded, err := a.Encode(text)
		if err != nil || string(encoded) != string([]byte{c}) {
			t.Errorf("%#02x is decoded to %q and encoded to %x, %v", c, text, encoded, err)
		}
	}
}

// FuzzDecode compares Decode with gsm7.Decode, except for an escaped 0x0D, which gsm7 decodes
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
			t.Fatalf("%d septets are decoded to %d octets", len(data), len(text))
		}
		if want, err := gsm7.Decode(data); err != nil || string(want) != text && !hasCR2(data) {
			t.Fatalf("%x: got %q, gsm7 returns %q, %v", data, text, want, err)
		}
		if !a.Fits(text) {
			t.Fatalf("%q does not fit", text)
		}
		encoded, err := a.Encode(text)
		relaytest.NoError(t, err)
		if decoded, err := a.Decode(encoded); err != nil || decoded != text {
			t.Fatalf("%q is encoded and decoded to %q, %v", text, decoded, err)
		}
	})
}

// hasCR2 reports whether data has an escaped 0x0D, the control character CR2 of TS 23.038.
func hasCR2(data []byte) bool {
	for i := 1; i < len(data); i++ {
		if data[i-1] == escape && data[i] == 0x0D {
			return true
		}
	}
	return false
}
