package sms_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/relaytest"
)

// octets returns n octets in hexadecimal.
func octets(n int) string { return strings.Repeat("5A", n) }

func TestParseHexAndSplit(t *testing.T) {
	const ports = "0605040B8423F0"
	for name, tc := range map[string]struct {
		data, udh string
		encoding  int
		coding    sms.Coding
		lengths   []int  // of the parts' data
		firstUDH  string // header of the first part
	}{
		"encoding 0 means octets":                       {"0102", "", 0, sms.Binary, []int{2}, ""},
		"lower-case digits between blanks":              {" 0a0B\n", "\t0605040b8423f0 ", 8, sms.Binary, []int{2}, "0605040b8423f0"},
		"a header only":                                 {"", ports, 8, sms.Binary, []int{0}, "0605040b8423f0"},
		"140 octets":                                    {octets(140), "", 8, sms.Binary, []int{140}, ""},
		"141 octets":                                    {octets(141), "", 8, sms.Binary, []int{134, 7}, "050003cc0201"},
		"133 octets after ports":                        {octets(133), ports, 8, sms.Binary, []int{133}, "0605040b8423f0"},
		"134 octets after ports":                        {octets(134), ports, 8, sms.Binary, []int{128, 6}, "0b05040b8423f00003cc0201"},
		"three parts after ports":                       {octets(257), ports, 8, sms.Binary, []int{128, 128, 1}, "0b05040b8423f00003cc0301"},
		"a part of the customer's own concatenation":    {octets(134), "050003010201", 8, sms.Binary, []int{134}, "050003010201"},
		"160 septets":                                   {octets(160), "", 7, sms.GSM, []int{160}, ""},
		"161 septets":                                   {octets(161), "", 7, sms.GSM, []int{153, 8}, "050003cc0201"},
		"152 septets after ports":                       {octets(152), ports, 7, sms.GSM, []int{152}, "0605040b8423f0"},
		"153 septets after ports":                       {octets(153), ports, 7, sms.GSM, []int{146, 7}, "0b05040b8423f00003cc0201"},
		"70 UTF-16 units":                               {strings.Repeat("4f60", 70), "", 16, sms.UCS2, []int{140}, ""},
		"71 UTF-16 units":                               {strings.Repeat("4f60", 71), "", 16, sms.UCS2, []int{134, 8}, "050003cc0201"},
		"a surrogate pair at a boundary":                {strings.Repeat("4f60", 66) + "d83cdf89" + strings.Repeat("4f60", 9), "", 16, sms.UCS2, []int{132, 22}, "050003cc0201"},
		"66 UTF-16 units after ports":                   {strings.Repeat("4f60", 66), ports, 16, sms.UCS2, []int{132}, "0605040b8423f0"},
		"the longest header with data in several parts": {octets(141), "82" + "7080" + octets(128), 8, sms.Binary, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := sms.ParseHex(tc.data, tc.udh, tc.encoding)
			relaytest.NoError(t, err)
			m, err := o.Split(0xCC)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the coding", m.Coding, tc.coding)
			var data []byte
			var lengths []int
			for i, p := range m.Parts {
				data = append(data, p.Data...)
				lengths = append(lengths, len(p.Data))
				if p.Octets() > sms.MaxOctets {
					t.Errorf("part %d has %d octets, more than %d", i+1, p.Octets(), sms.MaxOctets)
				}
			}
			relaytest.Equal(t, "the data of the parts", hex.EncodeToString(data), hex.EncodeToString(o.Data))
			if tc.lengths != nil {
				relaytest.Equal(t, "the lengths of the parts", lengths, tc.lengths)
				relaytest.Equal(t, "the header of the first part", hex.EncodeToString(m.Parts[0].UDH), tc.firstUDH)
			}
		})
	}
}

func TestParseHexRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		data, udh string
		encoding  int
		field     string
		offset    int
	}{
		"no data and no header":                 {"", "", 8, "data", 0},
		"an odd number of digits":               {"01020", "", 8, "data", 4},
		"an odd number of digits after blanks":  {"  010", "", 8, "data", 4},
		"a letter":                              {"01g2", "", 8, "data", 2},
		"a blank within the data":               {"01 02", "", 8, "data", 2},
		"a digit of another script":             {"01٣٣", "", 8, "data", 2},
		"a header with an odd number of digits": {"01", "050", 8, "udh", 2},
		"a header with a wrong length octet":    {"01", "060003010201", 8, "udh", 0},
		"an element that exceeds the header":    {"01", "03000501", 8, "udh", 1},
		"an unknown encoding":                   {"01", "", 9, "encoding", -1},
		"an octet above 0x7F":                   {"417F80", "", 7, "data", 2},
		"an escape before an escape":            {"411B1B65", "", 7, "data", 1},
		"an odd number of octets":               {"4f604f", "", 16, "data", 2},
		"a concatenation and too much data":     {octets(135), "050003010201", 8, "udh", 0},
		"a header that is too long":             {"01", "8C" + "708A" + octets(138), 8, "udh", 0},
		"a header that leaves no room":          {octets(20), "83" + "7081" + octets(129), 8, "udh", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sms.ParseHex(tc.data, tc.udh, tc.encoding)
			decoderstest.Refused(t, err, "sms", tc.field, tc.offset)
		})
	}
}

func TestSplitRefusesMoreThan255Parts(t *testing.T) {
	o := sms.Octets{Coding: sms.Binary, Data: make([]byte, 255*134)}
	m, err := o.Split(1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts", len(m.Parts), 255)
	o.Data = append(o.Data, 0)
	_, err = o.Split(1)
	decoderstest.Refused(t, err, "sms", "data", 255*134)
}

func TestSplitDoesNotChangeTheHeader(t *testing.T) {
	header := make(sms.UDH, 1, 4)
	header[0] = sms.Element{ID: 5, Data: []byte{0x0B, 0x84, 0x23, 0xF0}}
	o := sms.Octets{Coding: sms.Binary, Header: header, Data: make([]byte, 300)}
	if _, err := o.Split(1); err != nil {
		t.Fatal(err)
	}
	if appended := header[:2][1]; appended.Data != nil {
		t.Errorf("Split wrote %v after the header", appended)
	}
}

func FuzzParseHex(f *testing.F) {
	f.Add("0102", "0605040B8423F0", 8, byte(1))
	f.Add(octets(300), "0605040B8423F0", 7, byte(2))
	f.Add(strings.Repeat("d83cdf89", 50), "", 16, byte(3))
	f.Add(strings.Repeat("1b65", 90), "", 7, byte(3))
	f.Add(octets(20), "837081"+octets(129), 8, byte(0))
	f.Add("0", "zz", 0, byte(0))
	f.Fuzz(func(t *testing.T, data, udh string, encoding int, reference byte) {
		if len(data) > 20_000 {
			return
		}
		o, err := sms.ParseHex(data, udh, encoding)
		if err != nil {
			return
		}
		m, err := o.Split(reference)
		if err != nil {
			t.Fatalf("Split refuses parsed octets: %v", err)
		}
		var joined []byte
		for i, p := range m.Parts {
			joined = append(joined, p.Data...)
			isLast := i == len(m.Parts)-1
			if p.Octets() > sms.MaxOctets || !isLast && endsWithinCharacter(p) {
				t.Fatalf("part %d has %d octets, or ends within a character: % x", i+1, p.Octets(), p.Data)
			}
			if header, err := sms.ParseUDH(p.UDH); err != nil || len(m.Parts) > 1 && !isPart(header, len(m.Parts), i+1) {
				t.Fatalf("part %d: header %x, %v", i+1, p.UDH, err)
			}
		}
		if !bytes.Equal(joined, o.Data) {
			t.Fatalf("%x is split into parts with %x", o.Data, joined)
		}
	})
}

// isPart reports whether a header identifies part number of total parts.
func isPart(header sms.UDH, total, number int) bool {
	c, ok := header.Concat()
	return ok && c.Total == total && c.Part == number
}
