package sms

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/penstock/penstock/decoders"
)

// DecodeUCS2 reads big-endian UTF-16, which is what phones send as UCS-2. A
// lone surrogate becomes U+FFFD and takes nothing else with it; an odd number
// of octets is an error.
func DecodeUCS2(data []byte) (string, error) {
	if len(data)%2 != 0 {
		return "", &decoders.Error{Format: "ucs2", Offset: len(data) - 1, Reason: "odd number of octets"}
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 0; i < len(data); i += 2 {
		units = append(units, binary.BigEndian.Uint16(data[i:]))
	}
	return string(utf16.Decode(units)), nil
}

// EncodeUCS2 writes text as big-endian UTF-16.
func EncodeUCS2(text string) []byte {
	out := make([]byte, 0, 2*len(text))
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.BigEndian.AppendUint16(out, unit)
	}
	return out
}
