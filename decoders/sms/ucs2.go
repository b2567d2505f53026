package sms

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// The byte order marks of UTF-16.
const (
	markBE = "\xFE\xFF"
	markLE = "\xFF\xFE"
)

// DecodeUCS2 decodes UTF-16: big-endian, unless it begins with the byte order mark of
// little-endian. A byte order mark is not part of the text. A lone surrogate becomes U+FFFD,
// and so does a single octet at the end unless it is a NUL, which some senders append.
func DecodeUCS2(data []byte) string {
	if remaining, ok := bytes.CutPrefix(data, []byte(markLE)); ok {
		return DecodeUTF16LE(remaining)
	}
	return decodeUTF16(bytes.TrimPrefix(data, []byte(markBE)), binary.BigEndian)
}

// DecodeUTF16LE decodes little-endian UTF-16 as DecodeUCS2 does.
func DecodeUTF16LE(data []byte) string { return decodeUTF16(data, binary.LittleEndian) }

func decodeUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, 0, len(data)/2+1)
	for ; len(data) > 1; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	if len(data) == 1 && data[0] != 0 {
		units = append(units, 0xFFFD)
	}
	return string(utf16.Decode(units))
}

// JoinUCS2 joins the octets of consecutive parts of a text. A part may end within a
// character. JoinUCS2 removes the octets that some senders add to each part: a byte order
// mark, and a NUL at the end. It removes NULs only if all parts with an odd number of octets
// end with one.
func JoinUCS2(parts [][]byte) []byte {
	padded := true
	for _, p := range parts {
		padded = padded && (len(p)%2 == 0 || p[len(p)-1] == 0)
	}
	var joined []byte
	for i, p := range parts {
		if i > 0 && len(joined) > 1 && (string(joined[:2]) == markBE || string(joined[:2]) == markLE) {
			p = bytes.TrimPrefix(p, joined[:2])
		}
		if padded {
			p = p[:len(p)&^1]
		}
		joined = append(joined, p...)
	}
	return joined
}

// EncodeUCS2 encodes text as big-endian UTF-16.
func EncodeUCS2(text string) []byte {
	buf := make([]byte, 0, 2*len(text))
	for _, unit := range utf16.Encode([]rune(text)) {
		buf = binary.BigEndian.AppendUint16(buf, unit)
	}
	return buf
}
