package sms

import (
	"bytes"
	"testing"

	"github.com/warthog618/sms/encoding/gsm7"
)

func TestUnpack(t *testing.T) {
	for name, tc := range map[string]struct {
		packed       string
		headerOctets int
		want         string
	}{
		"ten septets":                           {"e8329bfd4697d9ec37", 0, "hellohello"},
		"no octets":                             {"", 0, ""},
		"a header without data":                 {"", 3, ""},
		"a header of six octets and a fill bit": {"906536fb0d", 6, "Hello"},
		"a header of seven octets":              {"c8329bfd06", 7, "Hello"},
		"seven spare bits padded with CR":       {"31d98c56b3dd1a", 0, "1234567"},
		"seven spare bits of zero":              {"31d98c56b3dd00", 0, "1234567"},
		"eight characters in seven octets":      {"31d98c56b3dd70", 0, "12345678"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unpack(fromHex(t, tc.packed), tc.headerOctets); string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("hellohello"), 0)
	f.Add([]byte("Hello"), 6)
	f.Add([]byte{0x1B, 0x65}, 7)
	f.Fuzz(func(t *testing.T, septets []byte, headerOctets int) {
		if headerOctets < 0 || headerOctets > 140 || len(septets) > 1000 {
			return
		}
		for i := range septets {
			septets[i] &= 0x7F
		}
		fill := (7 - headerOctets*8%7) % 7
		want := septets
		if lastIndex := len(want) - 1; lastIndex >= 0 && (fill+7*len(want))%8 == 0 && (want[lastIndex] == 0 || want[lastIndex] == '\r') {
			want = want[:lastIndex] // the last septet looks like padding
		}
		if got := Unpack(gsm7.Pack7Bit(septets, fill), headerOctets); !bytes.Equal(got, want) {
			t.Fatalf("%x after %d octets is unpacked to %x, want %x", septets, headerOctets, got, want)
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("hellohello"), 0)
	f.Add([]byte("1234567"), 0)
	f.Add([]byte("Hello"), 6)
	f.Add([]byte{}, 7)
	f.Fuzz(func(t *testing.T, septets []byte, headerOctets int) {
		if headerOctets < 0 || headerOctets > 140 || len(septets) > 1000 {
			return
		}
		for i := range septets {
			septets[i] &= 0x7F
		}
		want := bytes.Clone(septets)
		packed := Pack(septets, headerOctets)
		if !bytes.Equal(septets, want) {
			t.Fatal("the septets were changed")
		}
		got := Unpack(packed, headerOctets)
		fill := (7 - headerOctets*8%7) % 7
		if lastIndex := len(want) - 1; lastIndex >= 0 && (fill+7*len(want))%8 == 0 && (want[lastIndex] == 0 || want[lastIndex] == '\r') {
			want = want[:lastIndex] // the last septet looks like padding
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%x after %d octets is packed to %x, which is unpacked to %x", septets, headerOctets, packed, got)
		}
	})
}
