package smpp

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// fields are the fields of a PDU for a test. A zero command is deliver_sm.
type fields struct {
	command      Command
	service      string
	source, dest string
	class        byte
	coding       byte
	text         string // of short_message
	length       int    // sm_length; zero means the length of the text
	tlvs         string // in hex
	raw          string // the body in hex, instead of the fields above
	// commandLength is the command_length. Zero means the length of the PDU.
	commandLength uint32
}

// pdu encodes the PDU with status 0 and sequence number 7.
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
	length := f.commandLength
	if length == 0 {
		length = uint32(HeaderLen + len(body))
	}
	header := binary.BigEndian.AppendUint32(nil, length)
	header = binary.BigEndian.AppendUint32(header, uint32(command))
	header = binary.BigEndian.AppendUint32(header, 0)
	return append(binary.BigEndian.AppendUint32(header, 7), body...)
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
