package sms

import (
	"testing"

	"github.com/warthog618/sms/encoding/gsm7/charset"

	"github.com/penstock/penstock/relay/relaytest"
)

// The tables are those of the library but where it errs: Hindi's first three signs
// are Bengali's there, Portuguese lacks an Ê, and 0x0D is a control that the
// specification reserves.
func TestNationalTablesAreTheLibrarys(t *testing.T) {
	type place struct {
		language int
		single   bool
		septet   byte
	}
	errs := map[place]rune{
		{6, false, 0}: '\u0901', {6, false, 1}: '\u0902', {6, false, 2}: '\u0903', {portuguese, true, 0x1F}: 'Ê',
	}
	a := NewAlphabet()
	for l := range languages {
		char, ext := charset.NewDecoder(l), charset.NewExtDecoder(l)
		for c := range byte(128) {
			want, ok := errs[place{l, false, c}]
			if !ok {
				want = char[c]
			}
			if got := a.national.locking[l][c]; got != want {
				t.Errorf("language %d, %#02x: %q, want %q", l, c, got, want)
			}
			if c == '\r' || c == escape {
				continue
			}
			if want, ok = errs[place{l, true, c}]; !ok {
				want = ext[c]
			}
			if got := a.national.single[l][c]; got != want {
				t.Errorf("language %d, single shift %#02x: %q, want %q", l, c, got, want)
			}
		}
	}
}

func TestDecodeInALanguage(t *testing.T) {
	for name, tc := range map[string]struct {
		l        Languages
		in, want string
	}{
		"Turkish, single shift": {Languages{Single: 1}, "\x1bSi\x1bi \x1be5", "Şiı €5"},
		"Turkish, locking":      {Languages{Locking: 1}, "\x40\x1c\x07", "İŞı"},
		"Spanish":               {Languages{Single: 2}, "d\x1bia", "día"},
		"Portuguese, both":      {Languages{Locking: 3, Single: 3}, "S\x7ba \x1b\x1f", "Sãa Ê"},
		"Hindi":                 {Languages{Locking: 6, Single: 6}, "\x4d\x50\x1b\x1d", "हा१"},
		"Urdu":                  {Languages{Locking: 13}, "\x00\x4d", "ال"},
		"what the single shift lacks is as without": {Languages{Single: 6}, "\x1ba", "a"},
		"what neither has":                          {Languages{Locking: 4}, "\x0c", "\uFFFD"},
		"a language of a later release":             {Languages{Locking: 14, Single: 200}, "a\x1be", "a€"},
		"Spanish has no locking table":              {Languages{Locking: 2}, "\x40", "¡"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAlphabet().DecodeIn(tc.l, []byte(tc.in))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the text", got, tc.want)
		})
	}
}

func TestLanguagesOfAHeader(t *testing.T) {
	for name, tc := range map[string]struct {
		header UDH
		want   Languages
		known  bool
	}{
		"none":                        {UDH{{ID: Concat8, Data: []byte{1, 2, 1}}}, Languages{}, true},
		"both, behind others":         {UDH{{ID: Concat8, Data: []byte{1, 2, 1}}, {ID: SingleShift, Data: []byte{1}}, {ID: LockingShift, Data: []byte{3}}}, Languages{Locking: 3, Single: 1}, true},
		"twice: the last":             {UDH{{ID: SingleShift, Data: []byte{1}}, {ID: SingleShift, Data: []byte{2}}}, Languages{Single: 2}, true},
		"of another length: ignored":  {UDH{{ID: SingleShift, Data: []byte{1, 1}}, {ID: LockingShift}}, Languages{}, true},
		"a language that there isn't": {UDH{{ID: LockingShift, Data: []byte{14}}}, Languages{Locking: 14}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.header.Languages()
			relaytest.Equal(t, "the languages", got, tc.want)
			relaytest.Equal(t, "whether they are known", got == got.Known(), tc.known)
		})
	}
}
