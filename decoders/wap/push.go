package wap

import (
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
)

// Ports of a push without connection and without security (WAP-259, 6.5).
const (
	PushPort   = 2948 // of the phone
	SourcePort = 9200 // of the gateway
)

// pushPDU is the type of a WSP push (WAP-230, table 34).
const pushPDU = 0x06

// push puts a body behind the header of a WSP push and addresses it to the port.
// The headers begin with the content type.
func push(transaction byte, headers, body []byte) sms.Octets {
	data := []byte{transaction, pushPDU}
	data = appendUintvar(data, uint64(len(headers)))
	data = append(append(data, headers...), body...)
	return sms.Octets{Coding: sms.Binary, Header: sms.UDH{sms.Ports(PushPort, SourcePort)}, Data: data}
}

// appendUintvar writes seven bits an octet, the highest first (WAP-230, 8.1.2).
func appendUintvar(dst []byte, v uint64) []byte {
	octets := []byte{byte(v & 0x7F)}
	for v >>= 7; v > 0; v >>= 7 {
		octets = append([]byte{byte(v&0x7F) | 0x80}, octets...)
	}
	return append(dst, octets...)
}

func refuse(format, field string, offset int, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: offset, Reason: reason}
}

// checkAddress refuses an address (RFC 3986) that is empty or holds anything
// but printable ASCII.
func checkAddress(format, field, url string) error {
	if url == "" {
		return refuse(format, field, 0, "is empty")
	}
	for i := range len(url) {
		if url[i] <= ' ' || url[i] > '~' {
			return refuse(format, field, i, "is not printable ASCII")
		}
	}
	return nil
}

// checkText refuses a text that is not UTF-8 or has characters that are none in XML (XML 1.0,
// 2.2) or end a string; breaks reports whether lines and tabs may be.
func checkText(format, field, text string, breaks bool) error {
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return refuse(format, field, i, "is not UTF-8")
		case breaks && (r == '\t' || r == '\n' || r == '\r'):
			continue
		case r < ' ' || r == 0x7F || r == 0xFFFE || r == 0xFFFF:
			return refuse(format, field, i, "control character")
		}
	}
	return nil
}
