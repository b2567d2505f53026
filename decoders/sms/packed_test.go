package sms

import (
	"bytes"
	"testing"

	"github.com/warthog618/sms/encoding/gsm7"
)

func TestUnpack(t *testing.T) {
	for name, tc := range map[string]struct {
		in     string
		before int
		want   string
	}{
		"the usual example":     {"e8329bfd4697d9ec37", 0, "hellohello"},
		"nothing":               {"", 0, ""},
		"a header without data": {"", 3, ""},
		"after a header of six octets, a fill bit": {"906536fb0d", 6, "Hello"},
		"after a header of seven octets":           {"c8329bfd06", 7, "Hello"},
		"seven bits left over, padded":             {"31d98c56b3dd1a", 0, "1234567"},
		"seven bits left over, zero":               {"31d98c56b3dd00", 0, "1234567"},
		"eight characters in seven octets":         {"31d98c56b3dd70", 0, "12345678"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unpack(fromHex(t, tc.in), tc.before); string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("hellohello"), 0)
	f.Add([]byte("Hello"), 6)
	f.Add([]byte{0x1B, 0x65}, 7)
	f.Fuzz(func(t *testing.T, septets []byte, before int) {
		if before < 0 || before > 140 || len(septets) > 1000 {
			return
		}
		for i := range septets {
			septets[i] &= 0x7F
		}
		fill := (7 - before*8%7) % 7
		want := septets
		if last := len(want) - 1; last >= 0 && (fill+7*len(want))%8 == 0 && (want[last] == 0 || want[last] == '\r') {
			want = want[:last] // it cannot be told from padding
		}
		if got := Unpack(gsm7.Pack7Bit(septets, fill), before); !bytes.Equal(got, want) {
			t.Fatalf("%x behind %d octets became %x, want %x", septets, before, got, want)
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("hellohello"), 0)
	f.Add([]byte("1234567"), 0)
	f.Add([]byte("Hello"), 6)
	f.Add([]byte{}, 7)
	f.Fuzz(func(t *testing.T, septets []byte, before int) {
		if before < 0 || before > 140 || len(septets) > 1000 {
			return
		}
		for i := range septets {
			septets[i] &= 0x7F
		}
		whole := bytes.Clone(septets)
		packed := Pack(septets, before)
		if !bytes.Equal(septets, whole) {
			t.Fatal("the septets were changed")
		}
		got := Unpack(packed, before)
		fill := (7 - before*8%7) % 7
		if last := len(whole) - 1; last >= 0 && (fill+7*len(whole))%8 == 0 && (whole[last] == 0 || whole[last] == '\r') {
			whole = whole[:last] // it cannot be told from padding
		}
		if !bytes.Equal(got, whole) {
			t.Fatalf("%x behind %d octets became %x, and that %x", septets, before, packed, got)
		}
	})
}
