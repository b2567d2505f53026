package sms

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	return relaytest.Must(hex.DecodeString(s))(t)
}

func TestParseUDH(t *testing.T) {
	for name, tc := range map[string]struct {
		header string
		ids    []byte
		concat Concat
	}{
		"no octets":                          {header: ""},
		"a length of zero":                   {header: "00"},
		"an 8-bit reference":                 {"050003CC0201", []byte{0}, Concat{Reference: 0xCC, Total: 2, Part: 1}},
		"a 16-bit reference":                 {"060804ABCD0302", []byte{8}, Concat{Reference: 0xABCD, Wide: true, Total: 3, Part: 2}},
		"ports before the concatenation":     {"0B05040B8423F000037F0202", []byte{5, 0}, Concat{Reference: 0x7F, Total: 2, Part: 2}},
		"the last of two concatenations":     {"0A00030102010003020302", []byte{0, 0}, Concat{Reference: 2, Total: 3, Part: 2}},
		"ports only":                         {header: "0605040B8423F0", ids: []byte{5}},
		"part 0 is ignored":                  {header: "050003CC0200", ids: []byte{0}},
		"a part beyond the total":            {header: "050003CC0203", ids: []byte{0}},
		"a concatenation of the wrong width": {header: "040002CC02", ids: []byte{0}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := ParseUDH(fromHex(t, tc.header))
			relaytest.NoError(t, err)
			var ids []byte
			for _, e := range h {
				ids = append(ids, e.ID)
			}
			if !bytes.Equal(ids, tc.ids) {
				t.Errorf("elements %x, want %x", ids, tc.ids)
			}
			c, ok := h.Concat()
			relaytest.Equal(t, "the concatenation", c, tc.concat)
			relaytest.Equal(t, "whether there is a concatenation", ok, tc.concat.Total > 0)
		})
	}
}

func TestParseUDHRefuses(t *testing.T) {
	for name, header := range map[string]string{
		"a length that is too large":   "050003CC02",
		"a length that is too small":   "040003CC0201",
		"no length octet":              "0003CC0201",
		"an element beyond the header": "050004CC0201",
		"an element without a length":  "0100",
		"a truncated second element":   "060003CC020108",
	} {
		t.Run(name, func(t *testing.T) {
			if h, err := ParseUDH(fromHex(t, header)); err == nil {
				t.Errorf("parsed as %v", h)
			}
		})
	}
}

func FuzzParseUDH(f *testing.F) {
	for _, s := range []string{"", "00", "050003CC0201", "060804ABCD0302", "0B05040B8423F000037F0202", "050004CC0201", "ff"} {
		f.Add(fromHex(f, s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseUDH(data)
		if err != nil {
			return
		}
		if c, ok := h.Concat(); ok && (c.Part < 1 || c.Part > c.Total || c.Total > 255) {
			t.Fatalf("%x: part %d of %d", data, c.Part, c.Total)
		}
		reparsed, err := ParseUDH(h.Append(nil))
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the header after encoding", reparsed, h)
	})
}

func TestDecodeUCS2(t *testing.T) {
	for name, tc := range map[string]struct{ octets, want string }{
		"no octets":                            {"", ""},
		"Chinese":                              {"4f60597d", "你好"},
		"a surrogate pair":                     {"d83cdf89", "🎉"},
		"a lone high surrogate, then an A":     {"d83c0041", "\uFFFDA"},
		"a lone low surrogate":                 {"df89", "\uFFFD"},
		"a high surrogate at the end":          {"0041d83c", "A\uFFFD"},
		"a byte order mark":                    {"feff0041", "A"},
		"little-endian with a byte order mark": {"fffe4100e904", "Aө"},
		"a NUL after the text":                 {"0041004200", "AB"},
		"a NUL after little-endian":            {"fffe410000", "A"},
		"half a code unit at the end":          {"004104", "A\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the text", DecodeUCS2(fromHex(t, tc.octets)), tc.want)
		})
	}
}

func TestJoinUCS2(t *testing.T) {
	for name, tc := range map[string]struct {
		parts []string
		want  string
	}{
		"a single octet in the last part":                       {[]string{"00410400", "d1"}, "A\u0400\uFFFD"},
		"a code unit in two parts":                              {[]string{"004100", "420043"}, "ABC"},
		"a NUL after each part":                                 {[]string{"0041004200", "004300"}, "ABC"},
		"a NUL after the first part":                            {[]string{"004100", "0042"}, "AB"},
		"a byte order mark before each part":                    {[]string{"fffe4100", "fffe4200"}, "AB"},
		"a byte order mark before the first part":               {[]string{"fffe4100", "4200", "4300"}, "ABC"},
		"a byte order mark and a NUL in each of three parts":    {[]string{"fffe410000", "fffe420000", "fffe430000"}, "ABC"},
		"a byte order mark before the second part only is text": {[]string{"0041", "feff0042"}, "A\ufeffB"},
	} {
		t.Run(name, func(t *testing.T) {
			var parts [][]byte
			for _, p := range tc.parts {
				parts = append(parts, fromHex(t, p))
			}
			relaytest.Equal(t, "the text", DecodeUCS2(JoinUCS2(parts)), tc.want)
		})
	}
}

func FuzzDecodeUCS2(f *testing.F) {
	for _, s := range []string{"", "4f60597d", "d83cdf89", "d83c0041", "00", "fffe4100"} {
		f.Add(fromHex(f, s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := DecodeUCS2(data)
		if decoded := DecodeUCS2(append([]byte(markBE), EncodeUCS2(text)...)); decoded != text {
			t.Fatalf("%q is encoded and decoded to %q", text, decoded)
		}
	})
}
