package wap

import (
	"strings"

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

// newPush returns a WSP push with a body, addressed to PushPort. The headers begin with the content
// type.
func newPush(transaction byte, headers, body []byte) sms.Octets {
	data := []byte{transaction, pushPDU}
	data = appendUintvar(data, uint64(len(headers)))
	data = append(append(data, headers...), body...)
	return sms.Octets{Coding: sms.Binary, Header: sms.UDH{sms.Ports(PushPort, SourcePort)}, Data: data}
}

// appendUintvar appends v with seven bits in each octet, the highest first (WAP-230, 8.1.2).
func appendUintvar(dst []byte, v uint64) []byte {
	octets := []byte{byte(v & 0x7F)}
	for v >>= 7; v > 0; v >>= 7 {
		octets = append([]byte{byte(v&0x7F) | 0x80}, octets...)
	}
	return append(dst, octets...)
}

func newError(format, field string, offset int, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: offset, Reason: reason}
}

// checkAddress refuses an address (RFC 3986) that is empty or is not printable ASCII.
func checkAddress(format, field, url string) error {
	if url == "" {
		return newError(format, field, 0, "is empty")
	}
	for i := range len(url) {
		if url[i] <= ' ' || url[i] > '~' {
			return newError(format, field, i, "is not printable ASCII")
		}
	}
	return nil
}

// checkText refuses a text with characters that XML does not allow (XML 1.0, 2.2) or that end a
// string.
func checkText(format, field, text string, isMultiline bool) error {
	if i := strings.IndexAny(text, "\uFFFE\uFFFF"); i >= 0 {
		return newError(format, field, i, "control character")
	}
	return sms.CheckText(format, field, text, isMultiline)
}
