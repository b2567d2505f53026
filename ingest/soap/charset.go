package soap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"unicode/utf16"
)

// asUTF8 converts a document to UTF-8. The encoding is taken from its byte order
// mark, else the charset of the Content-Type, else the XML declaration.
func asUTF8(raw []byte, contentType string) ([]byte, error) {
	if rest, ok := bytes.CutPrefix(raw, []byte("\xef\xbb\xbf")); ok {
		return rest, nil
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("\xfe\xff")); ok {
		return fromUTF16(rest, binary.BigEndian)
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("\xff\xfe")); ok {
		return fromUTF16(rest, binary.LittleEndian)
	}
	label := declared(raw)
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && parameters["charset"] != "" {
		label = parameters["charset"]
	}
	switch strings.ToLower(label) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return raw, nil
	case "iso-8859-1", "latin1":
		return fromLatin1(raw), nil
	}
	return nil, &unreadable{reason: fmt.Sprintf("The character encoding %s is not supported; use UTF-8.", quoteClipped(label))}
}

// declared returns the encoding named in the XML declaration.
func declared(raw []byte) string {
	m := regexp.MustCompile(`^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']`).FindSubmatch(raw[:min(len(raw), 200)])
	if m == nil {
		return ""
	}
	return string(m[1])
}

func fromUTF16(raw []byte, order binary.ByteOrder) ([]byte, error) {
	if len(raw)%2 != 0 {
		return nil, &unreadable{offset: int64(len(raw)), reason: "The body is no UTF-16: half a unit is missing."}
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	return []byte(string(utf16.Decode(units))), nil
}

func fromLatin1(raw []byte) []byte {
	runes := make([]rune, len(raw))
	for i, b := range raw {
		runes[i] = rune(b)
	}
	return []byte(string(runes))
}
