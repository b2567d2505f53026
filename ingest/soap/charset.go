package soap

import (
	"bytes"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// asUTF8 converts a document to UTF-8. The encoding is taken from its byte order
// mark, else the charset of the Content-Type, else the XML declaration.
func asUTF8(raw []byte, contentType string) ([]byte, error) {
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xef\xbb\xbf")); ok {
		return remaining, nil
	}
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xfe\xff")); ok {
		return fromUTF16(remaining, unicode.BigEndian)
	}
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xff\xfe")); ok {
		return fromUTF16(remaining, unicode.LittleEndian)
	}
	label := "" // of the XML declaration
	encodingDeclaration := regexp.MustCompile(`^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)
	if m := encodingDeclaration.FindSubmatch(raw[:min(len(raw), 200)]); m != nil {
		label = string(m[1])
	}
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && parameters["charset"] != "" {
		label = parameters["charset"]
	}
	switch strings.ToLower(label) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return raw, nil
	case "iso-8859-1", "latin1":
		return charmap.ISO8859_1.NewDecoder().Bytes(raw)
	}
	return nil, &unreadable{reason: fmt.Sprintf("The character encoding %s is not supported; use UTF-8.", quoteClipped(label))}
}

func fromUTF16(raw []byte, order unicode.Endianness) ([]byte, error) {
	if len(raw)%2 != 0 {
		return nil, &unreadable{offset: int64(len(raw)), reason: "The body is not UTF-16: half a unit is missing."}
	}
	return unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Bytes(raw)
}
