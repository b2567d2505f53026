package wap

import (
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
