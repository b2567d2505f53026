package sms

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// testdata/national.txt was written from TS 23.038, annex A, independently of the library.
// An escaped CR or escape has no character.
func TestNationalTables(t *testing.T) {
	golden, err := os.ReadFile("testdata/national.txt")
	relaytest.NoError(t, err)
	var b strings.Builder
	for l := range languageCount {
		locking, single := nationalTables().locking[l], nationalTables().single[l]
		fmt.Fprintf(&b, "%d locking %+q\n%d single %+q\n", l, string(locking[:]), l, string(single[:]))
	}
	relaytest.Equal(t, "the tables", b.String(), string(golden))
}

func TestDecodeInALanguage(t *testing.T) {
	for name, tc := range map[string]struct {
		languages     Languages
		septets, want string
	}{
		"Turkish, single shift table":                      {Languages{Single: 1}, "\x1bSi\x1bi \x1be5", "Şiı €5"},
		"Turkish, locking shift table":                     {Languages{Locking: 1}, "\x40\x1c\x07", "İŞı"},
		"Spanish, single shift table":                      {Languages{Single: 2}, "d\x1bia", "día"},
		"Portuguese, both tables":                          {Languages{Locking: 3, Single: 3}, "S\x7ba \x1b\x1f", "Sãa Ê"},
		"Hindi, both tables":                               {Languages{Locking: 6, Single: 6}, "\x4d\x50\x1b\x1d", "हा१"},
		"Urdu, locking shift table":                        {Languages{Locking: 13}, "\x00\x4d", "ال"},
		"an escaped letter outside the single shift table": {Languages{Single: 6}, "\x1ba", "a"},
		"a septet without a character":                     {Languages{Locking: 4}, "\x0c", "\uFFFD"},
		"unknown languages":                                {Languages{Locking: 14, Single: 200}, "a\x1be", "a€"},
		"Spanish has no locking shift table":               {Languages{Locking: 2}, "\x40", "¡"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewAlphabet().DecodeIn(tc.languages, []byte(tc.septets))
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
		"no languages":                           {UDH{{ID: Concat8, Data: []byte{1, 2, 1}}}, Languages{}, true},
		"both languages after another element":   {UDH{{ID: Concat8, Data: []byte{1, 2, 1}}, {ID: SingleShift, Data: []byte{1}}, {ID: LockingShift, Data: []byte{3}}}, Languages{Locking: 3, Single: 1}, true},
		"the last of two elements is used":       {UDH{{ID: SingleShift, Data: []byte{1}}, {ID: SingleShift, Data: []byte{2}}}, Languages{Single: 2}, true},
		"elements of invalid length are ignored": {UDH{{ID: SingleShift, Data: []byte{1, 1}}, {ID: LockingShift}}, Languages{}, true},
		"an unknown language":                    {UDH{{ID: LockingShift, Data: []byte{14}}}, Languages{Locking: 14}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.header.Languages()
			relaytest.Equal(t, "the languages", got, tc.want)
			relaytest.Equal(t, "whether they are known", got == got.Known(), tc.known)
		})
	}
}
