package sms_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestText(t *testing.T) {
	segmenter := sms.New()
	for _, tc := range smstest.Texts() {
		t.Run(tc.Name, func(t *testing.T) {
			m, err := segmenter.Text(tc.Text, sms.Options{Reference: 0xA7})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the coding", int(m.Coding), tc.Coding)
			relaytest.Equal(t, "the number of parts", len(m.Parts), tc.Parts)
			relaytest.Equal(t, "whether the text is truncated", m.Truncated, false)
			if problem := violation(m, 0xA7); problem != "" {
				t.Error(problem)
			}
			relaytest.Equal(t, "the text of the parts", joined(m), tc.Text)
		})
	}
}

func joined(m sms.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// violation describes the invariant that a message violates, or returns "".
func violation(m sms.Message, reference byte) string {
	if len(m.Parts) < 1 || len(m.Parts) > sms.MaxParts {
		return "the number of parts is out of range"
	}
	for i, p := range m.Parts {
		if problem := partViolation(m, p, i+1, reference); problem != "" {
			return problem
		}
	}
	return ""
}

func partViolation(m sms.Message, p sms.Part, number int, reference byte) string {
	header, err := sms.ParseUDH(p.UDH)
	if err != nil {
		return err.Error()
	}
	c, concatenated := header.Concat()
	want := sms.Concat{Reference: uint16(reference), Total: len(m.Parts), Part: number}
	switch {
	case p.Octets() > sms.MaxOctets:
		return "a part has more than 140 octets"
	case p.Coding != m.Coding:
		return "a part has another coding than the message"
	case concatenated != (len(m.Parts) > 1) || concatenated && c != want:
		return "the concatenation is wrong"
	case endsWithinCharacter(p):
		return "a character is split"
	}
	return ""
}

// endsWithinCharacter reports whether a part ends after an escape or the first half of a
// surrogate pair.
func endsWithinCharacter(p sms.Part) bool {
	switch n := len(p.Data); {
	case n == 0:
		return false
	case p.Coding == sms.GSM:
		return p.Data[n-1] == 0x1B
	case p.Coding == sms.UCS2:
		return p.Data[n-2] >= 0xD8 && p.Data[n-2] <= 0xDB
	}
	return false
}

func TestTextTruncates(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, tc := range map[string]struct {
		text      string
		maxParts  int
		parts     int
		want      string
		truncated bool
	}{
		"a text that fits":                      {a(160), 1, 1, a(160), false},
		"one message without concatenation":     {a(400), 1, 1, a(160), true},
		"one message with a euro at its end":    {a(159) + "€" + a(9), 1, 1, a(159), true},
		"one message in UCS-2":                  {strings.Repeat("你", 99), 1, 1, strings.Repeat("你", 70), true},
		"one message with an emoji at its end":  {a(69) + "🎉", 1, 1, a(69), true},
		"two parts":                             {a(400), 2, 2, a(306), true},
		"two parts with a euro at their end":    {a(305) + "€", 2, 2, a(305), true},
		"two parts with a euro at the boundary": {a(152) + "€" + a(152), 2, 2, a(152) + "€" + a(151), true},
		"two parts of emoji":                    {strings.Repeat("🎉", 99), 2, 2, strings.Repeat("🎉", 66), true},
		"255 parts of a very long text":         {a(100_000), 255, 255, a(255 * 153), true},
		"the coding of the whole text":          {a(200) + "你", 1, 1, a(70), true},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := sms.New().Text(tc.text, sms.Options{MaxParts: tc.maxParts})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of parts", len(m.Parts), tc.parts)
			relaytest.Equal(t, "whether the text is truncated", m.Truncated, tc.truncated)
			relaytest.Equal(t, "the text of the parts", joined(m), tc.want)
			if problem := violation(m, 0); problem != "" {
				t.Error(problem)
			}
		})
	}
}

func TestTextRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		maxParts int
		field    string
		offset   int
	}{
		"an empty text":                {"", 0, "message", 0},
		"invalid UTF-8":                {"ab\xff", 0, "message", 2},
		"a truncated character":        {"ab\xef\xbf", 0, "message", 2},
		"more than 255 parts":          {strings.Repeat("a", 255*153+1), 0, "message", 255 * 153},
		"more than 255 parts of UCS-2": {strings.Repeat("你", 255*67+1), 0, "message", 3 * 255 * 67},
		"a negative number of parts":   {"a", -1, "max_parts", -1},
		"256 parts":                    {"a", 256, "max_parts", -1},
		"more than 255 parts of euros": {strings.Repeat("€", 1_000_000), 0, "message", 3 * 255 * 76},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sms.New().Text(tc.text, sms.Options{MaxParts: tc.maxParts})
			decoderstest.Refused(t, err, "sms", tc.field, tc.offset)
		})
	}
	m, err := sms.New().Text("\uFFFD", sms.Options{})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the text of a replacement character", joined(m), "\uFFFD")
}

func FuzzText(f *testing.F) {
	for _, tc := range smstest.Texts() {
		if len(tc.Text) < 2000 {
			f.Add(tc.Text, 0, byte(1))
		}
	}
	f.Add(strings.Repeat("a", 152)+"€"+strings.Repeat("a", 152), 2, byte(0xFF))
	f.Add("a\xff", 1, byte(0))
	segmenter := sms.New()
	f.Fuzz(func(t *testing.T, text string, maxParts int, reference byte) {
		m, err := segmenter.Text(text, sms.Options{MaxParts: maxParts, Reference: reference})
		if err != nil {
			if utf8.ValidString(text) && text != "" && maxParts >= 0 && maxParts <= sms.MaxParts && len(text) <= sms.MaxParts*66 {
				t.Fatalf("%q with at most %d parts: %v", text, maxParts, err)
			}
			return
		}
		if problem := violation(m, reference); problem != "" {
			t.Fatalf("%q with at most %d parts: %s", text, maxParts, problem)
		}
		got := joined(m)
		if !strings.HasPrefix(text, got) || m.Truncated != (got != text) || m.Truncated && (maxParts == 0 || len(m.Parts) != maxParts) {
			t.Fatalf("%q with at most %d parts is truncated to %q", text, maxParts, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	segmenter := sms.New()
	for name, text := range map[string]string{
		"one part": "123456 is your code. It expires in 10 minutes.",
		"3 parts":  strings.Repeat("Your parcel is on its way: 5 € ", 12),
		"2 UCS-2":  strings.Repeat("Привет! ", 12),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := segmenter.Text(text, sms.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
