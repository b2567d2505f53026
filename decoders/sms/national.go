package sms

import "strings"

// Languages are the national language tables of a 7-bit text, by their
// identifiers (TS 23.038, 6.2.1.2.4): 1 Turkish, 2 Spanish, 3 Portuguese,
// 4 Bengali and Assamese, 5 Gujarati, 6 Hindi, 7 Kannada, 8 Malayalam, 9 Oriya,
// 10 Punjabi, 11 Tamil, 12 Telugu, 13 Urdu. 0 is the default alphabet, and its
// extension.
type Languages struct {
	Locking byte // in the place of the default alphabet
	Single  byte // in the place of its extension, behind an escape
}

// languages is the number of identifiers, 0 included.
const languages = 14

// Languages returns the tables that a header names; of several the last counts
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

// Known returns the tables that there are. Those that there are not, which is a
// language of a later release, are 0, as the specification has unknown ones read.
// Spanish has no locking table.
func (l Languages) Known() Languages {
	if l.Locking >= languages || l.Locking == spanish {
		l.Locking = 0
	}
	if l.Single >= languages {
		l.Single = 0
	}
	return l
}

const (
	turkish    = 1
	spanish    = 2
	portuguese = 3
	bengali    = 4 // the first of those that are laid out alike
)

// table has a character for each septet, 0 where it has none.
type table [128]rune

// national are the tables of all languages.
type national struct{ locking, single [languages]table }

// newNational lays out the tables of TS 23.038, annex A. char and ext are the
// default alphabet and its extension, which some differ from in a few places.
func newNational(char, ext *table) *national {
	n := new(national)
	for l := range languages {
		n.locking[l], n.single[l] = *char, *ext
	}
	n.single[turkish].set("GIScgis", "ĞİŞçğış")
	n.locking[turkish].set("\x04\x07\x0b\x0c\x1c\x1d\x40\x60", "€ıĞğŞşİç")
	n.single[spanish].set("\tAIOUaiou", "çÁÍÓÚáíóú")
	n.single[portuguese].set("\x05\x09\x0b\x0c\x0e\x0f\x12\x13\x15\x16\x17\x18\x19\x1f", "êçÔôÁáΦΓΩΠΨΣΘÊ")
	n.single[portuguese].set("AIOU[\\aiou{|\x7f", "ÀÍÓÚÃÕÂíóúãõâ")
	n.locking[portuguese].set("\x04\x06\x07\x08\x09\x0b\x0c\x0e\x0f", "êúíóçÔôÁá")
	n.locking[portuguese].set("\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e", "ªÇÀ∞^\\€Ó|ÂâÊ")
	n.locking[portuguese].set("$@[\\]^`{|}~\x7f", "ºÍÃÕÚÜ~ãõ`üà")
	for i, s := range scripts() {
		n.locking[bengali+i], n.single[bengali+i] = s.lockingTable(), s.singleTable()
	}
	return n
}

// set gives septets their characters.
func (t *table) set(septets, characters string) {
	for i, r := range []rune(characters) {
		if r != ' ' || septets[i] == ' ' {
			t[septets[i]] = r
		}
	}
}

// script is a language whose tables are laid out as those of all South Asian ones.
type script struct {
	letters string // of the locking table, in their order; a blank where there is none
	tail    string // behind it: 0x60, and 0x7B to 0x7F
	shifted string // of the single shift table, in their order; blanks likewise
}

// scripts are those of Bengali to Urdu. The letters of the Indic ones stand in the
// order of their Unicode blocks.
func scripts() []script {
	const dandas = "\u0964\u0965"
	digits := func(zero rune) string { return run(zero, zero+9) }
	return []script{
		{indic(0x0980, "\x0d\x0e\x11\x12\x29\x31\x33\x34\x35\x45\x46\x49\x4a"), "\u09ce\u09d7\u09dc\u09dd\u09f0\u09f1", digits(0x09e6) + "\u09df\u09e0\u09e1\u09e2\u09e3" + run(0x09f2, 0x09fa)},
		{indic(0x0a80, "\x0e\x12\x29\x31\x34\x46\x4a"), "\u0ad0\u0ae0\u0ae1\u0ae2\u0ae3\u0af1", dandas + digits(0x0ae6)},
		{indic(0x0900, ""), "\u0950\u0972\u097b\u097c\u097e\u097f", dandas + digits(0x0966) + run(0x0951, 0x0954) + run(0x0958, 0x0963) + "\u0970\u0971"},
		{indic(0x0c80, "\x01\x0d\x11\x29\x34\x45\x49"), "\u0cd5\u0cd6\u0ce0\u0ce1\u0ce2\u0ce3", dandas + digits(0x0ce6) + "\u0cde\u0cf1\u0cf2"},
		{indic(0x0d00, "\x01\x0d\x11\x29\x3c\x45\x49"), "\u0d57\u0d60\u0d61\u0d62\u0d63\u0d79", dandas + run(0x0d66, 0x0d75) + run(0x0d7a, 0x0d7f)},
		{indic(0x0b00, "\x0d\x0e\x11\x12\x29\x31\x34\x45\x46\x49\x4a"), "\u0b56\u0b57\u0b60\u0b61\u0b62\u0b63", dandas + digits(0x0b66) + "\u0b5c\u0b5d\u0b5f\u0b70\u0b71"},
		{indic(0x0a00, "\x0b\x0c\x0d\x0e\x11\x12\x29\x31\x34\x37\x3d\x43\x44\x45\x46\x49\x4a"), "\u0a51\u0a70\u0a71\u0a72\u0a73\u0a74", dandas + digits(0x0a66) + "\u0a59\u0a5a\u0a5b\u0a5c\u0a5e\u0a75"},
		{indic(0x0b80, "\x01\x0b\x0c\x0d\x11\x16\x17\x18\x1b\x1d\x20\x21\x22\x25\x26\x27\x2b\x2c\x2d\x3c\x3d\x43\x44\x45\x49"), "\u0bd0\u0bd7\u0bf0\u0bf1\u0bf2\u0bf9", dandas + digits(0x0be6) + run(0x0bf3, 0x0bf8) + "\u0bfa"},
		{indic(0x0c00, "\x0d\x11\x29\x34\x3c\x45\x49"), "\u0c55\u0c56\u0c60\u0c61\u0c62\u0c63", "  " + digits(0x0c66) + "\u0c58\u0c59" + run(0x0c78, 0x0c7f)},
		{
			"\u0627\u0622\u0628\u067b\u0680\u067e\u06a6\u062a\u06c2\u067f\u0679\u067d\u067a\u067c\u062b\u062c\u0681\u0684\u0683\u0685\u0686\u0687\u062d\u062e\u062f" +
				"\u068c\u0688\u0689\u068a\u068f\u068d\u0630\u0631\u0691\u0693\u0699\u0632\u0696\u0698\u069a\u0633\u0634\u0635\u0636\u0637\u0638\u0639\u0641\u0642\u06a9" +
				"\u06aa\u06ab\u06af\u06b3\u06b1\u0644\u0645\u0646\u06ba\u06bb\u06bc\u0648\u06c4\u06d5\u06c1\u06be\u0621\u06cc\u06d0\u06d2\u064d\u0650\u064f\u0657",
			"\u0654\u0655\u0651\u0653\u0656\u0670",
			"\u0600\u0601" + digits(0x06f0) + "\u060c\u060d" + run(0x060e, 0x0614) + "\u061b\u061f\u0640\u0652\u0658\u066b\u066c\u0672\u0673\u06cd\u06d4",
		},
	}
}

// run is the characters from first to last.
func run(low, high rune) string {
	var b strings.Builder
	for r := low; r <= high; r++ {
		b.WriteRune(r)
	}
	return b.String()
}

// indic is the letters and signs of a block, with blanks for those without.
func indic(block rune, excluded string) string {
	var b strings.Builder
	for _, r := range run(0x01, 0x03) + run(0x05, 0x39) + run(0x3c, 0x4d) {
		if strings.ContainsRune(excluded, r) {
			b.WriteByte(' ')
		} else {
			b.WriteRune(block + r)
		}
	}
	return b.String()
}

// lockingTable has digits, small letters and marks where all have them.
func (s script) lockingTable() (t table) {
	const shared = "\n\r\x1b !),.0123456789:;?"
	t.set(shared+"(abcdefghijklmnopqrstuvwxyz", shared+")abcdefghijklmnopqrstuvwxyz")
	t.set(")", "(")
	t.set(between(0x00, 0x5f, shared+"("), s.letters)
	t.set("\x60\x7b\x7c\x7d\x7e\x7f", s.tail)
	return t
}

// singleTable has marks and capitals where all have them.
func (s script) singleTable() (t table) {
	t.set("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18", "@£$¥¿\"¤%&'\f*+-/<=>¡^¡_#*")
	t.set("()/<=>@e", "{}\\[~]|€")
	capitals := run('A', 'Z')
	t.set(capitals, capitals)
	t.set(between(0x19, 0x3f, "\x1b()/<=>"), s.shifted)
	return t
}

// between are the septets from first to last but some.
func between(low, high rune, but string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(but, r) {
			return -1
		}
		return r
	}, run(low, high))
}
