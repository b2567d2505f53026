package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/relaytest"
)

func in(coding sms.Coding, n, total byte, octets string) Message {
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

func text(n, total byte, s string) Message {
	return piece(fmt.Sprint("e", n), "447860000001", n, total, s)
}

func TestAssemble(t *testing.T) {
	wide := func(s string) string { return string(sms.EncodeUCS2(s)) }
	smile := wide("😀")
	for name, tc := range map[string]struct {
		parts   []Message
		text    string
		data    string
		coding  sms.Coding
		missing []int
	}{
		"in order":                        {[]Message{text(1, 2, "a"), text(2, 2, "b")}, "ab", "", sms.GSM, nil},
		"in any order":                    {[]Message{text(3, 3, "c"), text(1, 3, "a"), text(2, 3, "b")}, "abc", "", sms.GSM, nil},
		"an escape across the border":     {[]Message{in(sms.GSM, 2, 2, "\x65!"), in(sms.GSM, 1, 2, "5 \x1b")}, "5 €!", "", sms.GSM, nil},
		"a surrogate pair across it":      {[]Message{in(sms.UCS2, 1, 2, wide("a")+smile[:2]), in(sms.UCS2, 2, 2, smile[2:]+wide("b"))}, "a😀b", "", sms.UCS2, nil},
		"a code unit across it":           {[]Message{in(sms.UCS2, 1, 2, wide("a")+smile[:1]), in(sms.UCS2, 2, 2, smile[1:]+wide("b"))}, "a😀b", "", sms.UCS2, nil},
		"an odd octet at the end":         {[]Message{in(sms.UCS2, 1, 2, wide("a")), in(sms.UCS2, 2, 2, wide("b")+"\x04")}, "ab\uFFFD", "", sms.UCS2, nil},
		"a NUL behind each part":          {[]Message{in(sms.UCS2, 1, 2, wide("a")+"\x00"), in(sms.UCS2, 2, 2, wide("b")+"\x00")}, "ab", "", sms.UCS2, nil},
		"little-endian":                   {[]Message{in(sms.UCS2, 2, 2, "b\x00"), in(sms.UCS2, 1, 2, "\xff\xfea\x00")}, "ab", "", sms.UCS2, nil},
		"the first is missing":            {[]Message{text(2, 3, "b"), text(3, 3, "c")}, "[…]bc", "", sms.GSM, []int{1}},
		"one between is missing":          {[]Message{text(1, 3, "a"), text(3, 3, "c")}, "a[…]c", "", sms.GSM, []int{2}},
		"the last two are missing":        {[]Message{text(1, 3, "a")}, "a[…]", "", sms.GSM, []int{2, 3}},
		"a gap after an escape":           {[]Message{in(sms.GSM, 1, 3, "a\x1b"), in(sms.GSM, 3, 3, "\x65c")}, "a […]ec", "", sms.GSM, []int{2}},
		"a gap within a surrogate pair":   {[]Message{in(sms.UCS2, 1, 3, wide("a")+smile[:2]), in(sms.UCS2, 3, 3, smile[2:]+wide("c"))}, "a\uFFFD[…]\uFFFDc", "", sms.UCS2, []int{2}},
		"codings beside one another":      {[]Message{in(sms.GSM, 1, 2, "a"), in(sms.UCS2, 2, 2, wide("б"))}, "aб", "", sms.UCS2, nil},
		"text beside octets":              {[]Message{text(1, 2, "a"), in(sms.GSM, 2, 2, "b")}, "ab", "", sms.GSM, nil},
		"octets":                          {[]Message{in(sms.Binary, 2, 2, "\xff"), in(sms.Binary, 1, 2, "\x00")}, "", "\x00\xff", sms.Binary, nil},
		"octets with a gap":               {[]Message{in(sms.Binary, 3, 3, "\xff"), in(sms.Binary, 1, 3, "\x00")}, "", "\x00\xff", sms.Binary, []int{2}},
		"octets beside text":              {[]Message{text(1, 3, "a"), in(sms.Binary, 2, 3, "\xff"), in(sms.GSM, 3, 3, "\x1b")}, "", "a\xff\x1b", sms.Binary, nil},
		"octets that the coding has not":  {[]Message{in(sms.GSM, 1, 2, "\xff"), in(sms.GSM, 2, 2, "b")}, "??", "", sms.GSM, nil},
		"a national character left alone": {[]Message{text(1, 2, "日"), text(2, 2, "本")}, "日本", "", sms.GSM, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, missing := assembler{sms.NewAlphabet()}.assemble(tc.parts)
			relaytest.Equal(t, "text, data and coding", []any{m.Text, string(m.Data), m.Coding}, []any{tc.text, tc.data, tc.coding})
			relaytest.Equal(t, "the missing parts", missing, tc.missing)
			relaytest.Equal(t, "the status", m.Status, Concatenated)
			relaytest.Equal(t, "the octets", m.Octets, nil)
			relaytest.Equal(t, "the part", m.Part, nil)
			relaytest.Equal(t, "the UDH", string(m.UDH), "")
		})
	}
}

// Neighbours are decoded together where they are in one language, and a table that
// is not known shows in the status of the whole.
func TestAssembleInLanguages(t *testing.T) {
	speaking := func(m Message, table, language byte) Message {
		header, _ := sms.ParseUDH(m.UDH)
		m.UDH = append(header, sms.Element{ID: table, Data: []byte{language}}).Append(nil)
		return m
	}
	m, _ := assembler{sms.NewAlphabet()}.assemble([]Message{
		speaking(in(sms.GSM, 1, 4, "a\x1b"), sms.SingleShift, 1), speaking(in(sms.GSM, 2, 4, "ib"), sms.SingleShift, 1),
		speaking(in(sms.GSM, 3, 4, "\x40"), sms.LockingShift, 3), in(sms.GSM, 4, 4, "\x40"),
	})
	relaytest.Equal(t, "the text and the part of it that is not understood", []string{m.Text, strings.Join(NotesOf(&m), "; ")}, []string{"aıbÍ¡", ""})
	relaytest.Equal(t, "the status", m.Status, Concatenated)
	odd := speaking(in(sms.GSM, 2, 2, "\x40"), sms.LockingShift, 14)
	odd.Status = Indecipherable // as it was read
	m, _ = assembler{sms.NewAlphabet()}.assemble([]Message{in(sms.GSM, 1, 2, "a"), odd})
	relaytest.Equal(t, "the text with an unknown alphabet", m.Text, "a¡")
	relaytest.Equal(t, "the status with an unknown alphabet", m.Status, Indecipherable)
	if said := strings.Join(NotesOf(&odd), "; "); !strings.Contains(said, "language tables 14 (locking) and 0") {
		t.Error(said)
	}
}

func TestAssembleRemovesALeadingByteOrderMark(t *testing.T) {
	for want, parts := range map[string][]Message{
		"ab":       {in(sms.UCS2, 1, 2, "\xfe\xff\x00a"), in(sms.UCS2, 2, 2, "\x00b")},
		"a\ufeffb": {in(sms.UCS2, 1, 2, "\x00a"), in(sms.UCS2, 2, 2, "\xfe\xff\x00b")},
		"[…]abc":   {in(sms.UCS2, 2, 2, "\xfe\xff\x00a\x00b\x00c")},
	} {
		if m, _ := (assembler{sms.NewAlphabet()}).assemble(parts); m.Text != want {
			t.Errorf("%q, want %q", m.Text, want)
		}
	}
}

func TestAssembleKeepsWhatElseThePartsSay(t *testing.T) {
	first, second := in(sms.Binary, 1, 2, "a"), in(sms.Binary, 2, 2, "b")
	first.UDH = []byte("\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x01\x02\x01")
	first.ReceivedAt, second.ReceivedAt = time.Unix(20, 0), time.Unix(10, 0)
	m, _ := assembler{sms.NewAlphabet()}.assemble([]Message{second, first})
	relaytest.Equal(t, "the UDH", string(m.UDH), "\x06\x05\x04\x0b\x84\x23\xf0")
	relaytest.Equal(t, "the time of receipt", m.ReceivedAt, time.Unix(20, 0))
	relaytest.Equal(t, "the carrier's id", m.CarrierID, "")
	relaytest.Equal(t, "sender, number and network", []any{m.From, m.To, m.Network}, []any{first.From, first.To, first.Network})
}

// However the octets of a text are cut, the parts give the text again.
func FuzzAssemble(f *testing.F) {
	f.Add("5 € for [you]", uint8(3), false)
	f.Add("😀😀é", uint8(5), true)
	f.Add("", uint8(0), true)
	alphabet := sms.NewAlphabet()
	f.Fuzz(func(t *testing.T, s string, cut uint8, wide bool) {
		coding, octets := sms.UCS2, sms.EncodeUCS2(s)
		if !wide {
			septets, err := alphabet.Encode(s)
			if err != nil {
				return
			}
			coding, octets = sms.GSM, septets
		}
		at := min(int(cut), len(octets))
		if at == 0 || at == len(octets) {
			return // a part of nothing
		}
		m, missing := assembler{alphabet}.assemble([]Message{in(coding, 2, 2, string(octets[at:])), in(coding, 1, 2, string(octets[:at]))})
		want := strings.TrimPrefix(strings.TrimRight(string([]rune(s)), "\x00"), "\ufeff")
		if wide && at%2 != 0 && octets[len(octets)-1] == 0 || strings.HasPrefix(want, "\ufffe") || strings.HasPrefix(want, "\ufeff") {
			return // NULs or marks that a sender added
		}
		if m.Text != want || len(missing) != 0 {
			t.Fatalf("%q cut at %d became %q", want, at, m.Text)
		}
	})
}
