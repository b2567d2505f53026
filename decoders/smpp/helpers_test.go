package smpp

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// fields are a deliver_sm's, with what most have.
type fields struct {
	command      Command
	service      string
	source, dest string
	class        byte
	coding       byte
	text         string // of short_message
	length       int    // of sm_length, if it is not that of the text
	tlvs         string // in hex
	raw          string // what follows the header, in hex, instead of all
	stated       uint32 // command_length, if it is not the PDU's
}

// pdu writes the octets.
func (f fields) pdu(t testing.TB) []byte {
	t.Helper()
	body := unhex(t, f.raw)
	if f.raw == "" {
		body = f.body()
		body = append(body, unhex(t, f.tlvs)...)
	}
	command := f.command
	if command == 0 {
		command = DeliverSM
	}
	length := f.stated
	if length == 0 {
		length = uint32(HeaderLen + len(body))
	}
	out := binary.BigEndian.AppendUint32(nil, length)
	out = binary.BigEndian.AppendUint32(out, uint32(command))
	out = binary.BigEndian.AppendUint32(out, 0)
	return append(binary.BigEndian.AppendUint32(out, 7), body...)
}

func (f fields) body() []byte {
	b := append([]byte(f.service), 0)
	b = append(append(append(b, 1, 1), f.source...), 0)
	b = append(append(append(b, 2, 8), f.dest...), 0)
	if f.command == DataSM {
		return append(b, f.class, 1, f.coding)
	}
	length := f.length
	if length == 0 {
		length = len(f.text)
	}
	b = append(b, f.class, 0x41, 0, 0, 0, 1, 0, f.coding, 0, byte(length))
	return append(b, f.text...)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	return relaytest.Must(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}
