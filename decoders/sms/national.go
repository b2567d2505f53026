package sms

import (
	"sync"

	"github.com/warthog618/sms/encoding/gsm7/charset"
)

// Languages are the national language tables of a 7-bit text, by their
// identifiers (TS 23.038, 6.2.1.2.4): 1 Turkish, 2 Spanish, 3 Portuguese,
// 4 Bengali and Assamese, 5 Gujarati, 6 Hindi, 7 Kannada, 8 Malayalam, 9 Oriya,
// 10 Punjabi, 11 Tamil, 12 Telugu, 13 Urdu. 0 is the default alphabet and its
// extension.
type Languages struct {
	Locking byte // replaces the default alphabet
	Single  byte // replaces the extension, the characters after an escape
}

// languageCount is the number of identifiers, 0 included.
const languageCount = 14

// Languages returns the tables that a header names, the last ones if a table is repeated
// (TS 23.040, 9.2.3.24.15 and 16).
func (h UDH) Languages() (l Languages) {
	for _, e := range h {
		switch {
		case len(e.Data) != 1:
		case e.ID == SingleShift:
			l.Single = e.Data[0]
		case e.ID == LockingShift:
			l.Locking = e.Data[0]
		}
	}
	return l
}

// Known returns l with 0 for each unknown table, such as one of a later release, as the
// specification requires. Spanish has no locking table.
func (l Languages) Known() Languages {
	if l.Locking >= languageCount || int(l.Locking) == charset.Spanish {
		l.Locking = 0
	}
	if l.Single >= languageCount {
		l.Single = 0
	}
	return l
}

// table has a character for each septet, or 0.
type table [128]rune

// tables are the tables of all languages (TS 23.038, annex A).
type tables struct{ locking, single [languageCount]table }

// nationalTables returns the library's tables with corrections. The OnceValue is necessary,
// because the library builds its tables at the first use without a lock.
var nationalTables = sync.OnceValue(func() *tables { //nolint:gochecknoglobals // read-only
	t := new(tables)
	for l := range languageCount {
		for septet, r := range charset.NewDecoder(l) {
			t.locking[l][septet] = r
		}
		for septet, r := range charset.NewExtDecoder(l) {
			t.single[l][septet] = r
		}
		// The specification reserves CR2 for control characters and the escape for another
		// table. The library has characters for them.
		t.single[l]['\r'], t.single[l][escape] = 0, 0
	}
	// The library has Bengali characters for the first signs of Hindi and lacks an Ê of Portuguese.
	copy(t.locking[charset.Hindi][:], []rune{'\u0901', '\u0902', '\u0903'})
	t.single[charset.Portuguese][0x1F] = 'Ê'
	return t
})
