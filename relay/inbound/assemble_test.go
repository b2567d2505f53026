package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/relaytest"
)

func codedPart(coding sms.Coding, n, total byte, octets string) Message {
	m := piece(fmt.Sprint("e", n), "447860000001", n, total, "")
	m.Coding = coding
	switch coding {
	case sms.Binary:
		m.Data = []byte(octets)
	default:
		m.Octets = []byte(octets)
		m.Text = "?"
	}
	return m
}

func textPart(n, total byte, s string) Message {
	return piece(fmt.Sprint("e", n), "447860000001", n, total, s)
}

func TestAssemble(t *testing.T) {
	ucs2 := func(s string) string { return string(sms.EncodeUCS2(s)) }
	smile := ucs2("😀")
	for name, tc := range map[string]struct {
		parts   []Message
		text    string
		data    string
		coding  sms.Coding
		missing []int
	}{
		"in order":                              {[]Message{textPart(1, 2, "a"), textPart(2, 2, "b")}, "ab", "", sms.GSM, nil},
		"in any order":                          {[]Message{textPart(3, 3, "c"), textPart(1, 3, "a"), textPart(2, 3, "b")}, "abc", "", sms.GSM, nil},
		"an escape across the parts":            {[]Message{codedPart(sms.GSM, 2, 2, "\x65!"), codedPart(sms.GSM, 1, 2, "5 \x1b")}, "5 €!", "", sms.GSM, nil},
		"a surrogate pair across the parts":     {[]Message{codedPart(sms.UCS2, 1, 2, ucs2("a")+smile[:2]), codedPart(sms.UCS2, 2, 2, smile[2:]+ucs2("b"))}, "a😀b", "", sms.UCS2, nil},
		"a code unit across the parts":          {[]Message{codedPart(sms.UCS2, 1, 2, ucs2("a")+smile[:1]), codedPart(sms.UCS2, 2, 2, smile[1:]+ucs2("b"))}, "a😀b", "", sms.UCS2, nil},
		"an odd octet at the end":               {[]Message{codedPart(sms.UCS2, 1, 2, ucs2("a")), codedPart(sms.UCS2, 2, 2, ucs2("b")+"\x04")}, "ab\uFFFD", "", sms.UCS2, nil},
		"a NUL after each part":                 {[]Message{codedPart(sms.UCS2, 1, 2, ucs2("a")+"\x00"), codedPart(sms.UCS2, 2, 2, ucs2("b")+"\x00")}, "ab", "", sms.UCS2, nil},
		"little-endian":                         {[]Message{codedPart(sms.UCS2, 2, 2, "b\x00"), codedPart(sms.UCS2, 1, 2, "\xff\xfea\x00")}, "ab", "", sms.UCS2, nil},
		"the first part is missing":             {[]Message{textPart(2, 3, "b"), textPart(3, 3, "c")}, "[…]bc", "", sms.GSM, []int{1}},
		"a middle part is missing":              {[]Message{textPart(1, 3, "a"), textPart(3, 3, "c")}, "a[…]c", "", sms.GSM, []int{2}},
		"the last two parts are missing":        {[]Message{textPart(1, 3, "a")}, "a[…]", "", sms.GSM, []int{2, 3}},
		"a gap after an escape":                 {[]Message{codedPart(sms.GSM, 1, 3, "a\x1b"), codedPart(sms.GSM, 3, 3, "\x65c")}, "a […]ec", "", sms.GSM, []int{2}},
		"a gap within a surrogate pair":         {[]Message{codedPart(sms.UCS2, 1, 3, ucs2("a")+smile[:2]), codedPart(sms.UCS2, 3, 3, smile[2:]+ucs2("c"))}, "a\uFFFD[…]\uFFFDc", "", sms.UCS2, []int{2}},
		"parts in different codings":            {[]Message{codedPart(sms.GSM, 1, 2, "a"), codedPart(sms.UCS2, 2, 2, ucs2("б"))}, "aб", "", sms.UCS2, nil},
		"a part without octets":                 {[]Message{textPart(1, 2, "a"), codedPart(sms.GSM, 2, 2, "b")}, "ab", "", sms.GSM, nil},
		"octets":                                {[]Message{codedPart(sms.Binary, 2, 2, "\xff"), codedPart(sms.Binary, 1, 2, "\x00")}, "", "\x00\xff", sms.Binary, nil},
		"octets with a gap":                     {[]Message{codedPart(sms.Binary, 3, 3, "\xff"), codedPart(sms.Binary, 1, 3, "\x00")}, "", "\x00\xff", sms.Binary, []int{2}},
		"binary and text parts":                 {[]Message{textPart(1, 3, "a"), codedPart(sms.Binary, 2, 3, "\xff"), codedPart(sms.GSM, 3, 3, "\x1b")}, "", "a\xff\x1b", sms.Binary, nil},
		"octets that are invalid in the coding": {[]Message{codedPart(sms.GSM, 1, 2, "\xff"), codedPart(sms.GSM, 2, 2, "b")}, "??", "", sms.GSM, nil},
		"text without octets":                   {[]Message{textPart(1, 2, "日"), textPart(2, 2, "本")}, "日本", "", sms.GSM, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, missing := assembler{sms.NewAlphabet()}.assemble(tc.parts)
			relaytest.Equal(t, "text, data and coding", []any{m.Text, string(m.Data), m.Coding}, []any{tc.text, tc.data, tc.coding})
			relaytest.Equal(t, "the missing parts", missing, tc.missing)
			relaytest.Equal(t, "the status", m.Stat, Concatenated)
			relaytest.Equal(t, "the octets", m.Octets, nil)
			relaytest.Equal(t, "the part", m.Part, nil)
			relaytest.Equal(t, "the UDH", string(m.UDH), "")
		})
	}
}

// Adjacent parts in one language are decoded together. An unknown language table sets the status
// of the message.
func TestAssembleDecodesLanguageTables(t *testing.T) {
	withTable := func(m Message, table, language byte) Message {
		header, _ := sms.ParseUDH(m.UDH)
		m.UDH = append(header, sms.Element{ID: table, Data: []byte{language}}).Append(nil)
		return m
	}
	m, _ := assembler{sms.NewAlphabet()}.assemble([]Message{
		withTable(codedPart(sms.GSM, 1, 4, "a\x1b"), sms.SingleShift, 1), withTable(codedPart(sms.GSM, 2, 4, "ib"), sms.SingleShift, 1),
		withTable(codedPart(sms.GSM, 3, 4, "\x40"), sms.LockingShift, 3), codedPart(sms.GSM, 4, 4, "\x40"),
	})
	relaytest.Equal(t, "text and notes", []string{m.Text, strings.Join(NotesOf(&m), "; ")}, []string{"aıbÍ¡", ""})
	relaytest.Equal(t, "the status", m.Stat, Concatenated)
	unknown := withTable(codedPart(sms.GSM, 2, 2, "\x40"), sms.LockingShift, 14)
	unknown.Stat = Indecipherable // as the decoder set it
	m, _ = assembler{sms.NewAlphabet()}.assemble([]Message{codedPart(sms.GSM, 1, 2, "a"), unknown})
	relaytest.Equal(t, "the text with an unknown alphabet", m.Text, "a¡")
	relaytest.Equal(t, "the status with an unknown alphabet", m.Stat, Indecipherable)
	if notes := strings.Join(NotesOf(&unknown), "; "); !strings.Contains(notes, "language tables 14 (locking) and 0") {
		t.Errorf("notes = %q, want the unknown language tables", notes)
	}
}

func TestAssembleRemovesALeadingByteOrderMark(t *testing.T) {
	for want, parts := range map[string][]Message{
		"ab":       {codedPart(sms.UCS2, 1, 2, "\xfe\xff\x00a"), codedPart(sms.UCS2, 2, 2, "\x00b")},
		"a\ufeffb": {codedPart(sms.UCS2, 1, 2, "\x00a"), codedPart(sms.UCS2, 2, 2, "\xfe\xff\x00b")},
		"[…]abc":   {codedPart(sms.UCS2, 2, 2, "\xfe\xff\x00a\x00b\x00c")},
	} {
		if m, _ := (assembler{sms.NewAlphabet()}).assemble(parts); m.Text != want {
			t.Errorf("text = %q, want %q", m.Text, want)
		}
	}
}

func TestAssembleKeepsTheFieldsOfTheFirstPart(t *testing.T) {
	first, second := codedPart(sms.Binary, 1, 2, "a"), codedPart(sms.Binary, 2, 2, "b")
	first.UDH = []byte("\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x01\x02\x01")
	first.ReceivedAt, second.ReceivedAt = time.Unix(20, 0), time.Unix(10, 0)
	m, _ := assembler{sms.NewAlphabet()}.assemble([]Message{second, first})
	relaytest.Equal(t, "the UDH", string(m.UDH), "\x06\x05\x04\x0b\x84\x23\xf0")
	relaytest.Equal(t, "the time of receipt", m.ReceivedAt, time.Unix(20, 0))
	relaytest.Equal(t, "the carrier's id", m.CarrierID, "")
	relaytest.Equal(t, "sender, number and network", []any{m.From, m.To, m.Network}, []any{first.From, first.To, first.Network})
}

// FuzzAssemble checks that two parts of a text give the text, wherever the octets are split.
func FuzzAssemble(f *testing.F) {
	f.Add("5 € for [you]", uint8(3), false)
	f.Add("😀😀é", uint8(5), true)
	f.Add("", uint8(0), true)
	alphabet := sms.NewAlphabet()
	f.Fuzz(func(t *testing.T, s string, position uint8, isUCS2 bool) {
		coding, octets := sms.UCS2, sms.EncodeUCS2(s)
		if !isUCS2 {
			septets, err := alphabet.Encode(s)
			if err != nil {
				return
			}
			coding, octets = sms.GSM, septets
		}
		split := min(int(position), len(octets))
		if split == 0 || split == len(octets) {
			return // an empty part
		}
		m, missing := assembler{alphabet}.assemble([]Message{codedPart(coding, 2, 2, string(octets[split:])), codedPart(coding, 1, 2, string(octets[:split]))})
		want := strings.TrimPrefix(strings.TrimRight(string([]rune(s)), "\x00"), "\ufeff")
		if isUCS2 && split%2 != 0 && octets[len(octets)-1] == 0 || strings.HasPrefix(want, "\ufffe") || strings.HasPrefix(want, "\ufeff") {
			return // trailing NULs and leading byte order marks are removed
		}
		if m.Text != want || len(missing) != 0 {
			t.Fatalf("text split at octet %d = %q, want %q", split, m.Text, want)
		}
	})
}
