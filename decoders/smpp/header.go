package smpp

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/decoders"
)

// HeaderLen is the length of a PDU's header, in octets.
const HeaderLen = 16

// Command is a command_id (5.1.2.1).
type Command uint32

// The commands between an SMSC and an ESME. An answer has the highest bit set.
const (
	GenericNack       Command = 0x80000000
	BindReceiver      Command = 0x00000001
	BindTransmitter   Command = 0x00000002
	SubmitSM          Command = 0x00000004
	Unbind            Command = 0x00000006
	DeliverSM         Command = 0x00000005
	BindTransceiver   Command = 0x00000009
	EnquireLink       Command = 0x00000015
	AlertNotification Command = 0x00000102
	DataSM            Command = 0x00000103
)

// Response reports whether the command answers another.
func (c Command) Response() bool { return c&0x80000000 != 0 }

// Answer is the command that answers this one.
func (c Command) Answer() Command { return c | 0x80000000 }

func (c Command) String() string { return fmt.Sprintf("0x%08X", uint32(c)) }

// Header is the beginning of every PDU.
type Header struct {
	Length   uint32 // of the whole PDU, in octets
	Command  Command
	Status   uint32
	Sequence uint32
}

// ParseHeader reads the first 16 octets of a PDU. Whether its length is the
// PDU's is for who knows where the PDU ends.
func ParseHeader(pdu []byte) (Header, error) {
	if len(pdu) < HeaderLen {
		return Header{}, fault("command_length", len(pdu), "ends within the header")
	}
	return Header{
		Length:   binary.BigEndian.Uint32(pdu),
		Command:  Command(binary.BigEndian.Uint32(pdu[4:])),
		Status:   binary.BigEndian.Uint32(pdu[8:]),
		Sequence: binary.BigEndian.Uint32(pdu[12:]),
	}, nil
}

func fault(field string, offset int, reason string) error {
	return &decoders.Error{Format: "smpp", Field: field, Offset: offset, Reason: reason}
}
