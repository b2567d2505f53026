package smpp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/decoders"
)

// The largest lengths of C-octet strings in octets, with the NUL at their end. They are
// larger than those of deliver_sm, 21 octets for an address and 6 for a service type, because some
// SMSCs send more.
const (
	maxAddress = 65
	maxService = 21
	maxTime    = 17
)

// Address is a source or a destination.
type Address struct {
	TON, NPI byte   // type of number, numbering plan indicator
	Digits   string // or an alphanumeric name, in the SMSC's encoding
}

// Alphanumeric is the TON of an alphanumeric name (5.2.5).
const Alphanumeric = 5

// Parameter is an optional parameter (TLV).
type Parameter struct {
	Tag   uint16
	Value []byte
}

// Delivery is a deliver_sm or a data_sm.
type Delivery struct {
	Header
	Source       Address
	Destination  Address
	ESMClass     byte
	DataCoding   byte
	ShortMessage []byte // nil in a data_sm
	Parameters   []Parameter
	// Ignored is the number of octets after the message that belong to no field.
	Ignored int
}

// ParseDelivery parses a whole deliver_sm or data_sm. The Delivery shares memory with pdu.
// The error is a *decoders.Error whose field has its SMPP name, or is tlv for an optional
// parameter. The field is command_id if the PDU has another command.
func ParseDelivery(pdu []byte) (*Delivery, error) {
	h, err := ParseHeader(pdu)
	if err != nil {
		return nil, err
	}
	if int64(h.Length) != int64(len(pdu)) {
		return nil, fault("command_length", 0, "is "+strconv.FormatUint(uint64(h.Length), 10)+" for a PDU of "+strconv.Itoa(len(pdu))+" octets")
	}
	if h.Command != DeliverSM && h.Command != DataSM {
		return nil, fault("command_id", 4, h.Command.String()+" does not carry a message")
	}
	r := reader{pdu: pdu, offset: HeaderLen}
	d := &Delivery{Header: h}
	r.text("service_type", maxService)
	d.Source, d.Destination = r.address("source"), r.address("destination")
	d.ESMClass = r.octet("esm_class")
	if h.Command == DataSM {
		r.octet("registered_delivery")
		d.DataCoding = r.octet("data_coding")
	} else {
		r.octet("protocol_id")
		r.octet("priority_flag")
		r.text("schedule_delivery_time", maxTime)
		r.text("validity_period", maxTime)
		r.octet("registered_delivery")
		r.octet("replace_if_present_flag")
		d.DataCoding = r.octet("data_coding")
		r.octet("sm_default_msg_id")
		d.ShortMessage = r.octets("short_message", int(r.octet("sm_length")))
	}
	if r.err == nil {
		r.readParameters(d)
	}
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// reader reads the fields of a PDU in their order. After the first error it is at the end of
// the PDU.
type reader struct {
	pdu       []byte
	offset    int
	err       error // the first
	tlvOffset int   // offset of the optional parameter that was read last
}

func (r *reader) fail(field, reason string) {
	if r.err == nil {
		r.err = fault(field, r.offset, reason)
	}
	r.offset = len(r.pdu)
}

func (r *reader) octet(field string) byte {
	if r.offset >= len(r.pdu) {
		r.fail(field, "is missing")
		return 0
	}
	r.offset++
	return r.pdu[r.offset-1]
}

func (r *reader) octets(field string, n int) []byte {
	if n > len(r.pdu)-r.offset {
		r.fail(field, "reaches beyond the PDU")
		return nil
	}
	r.offset += n
	return r.pdu[r.offset-n : r.offset : r.offset]
}

// text reads a C-octet string of at most limit octets, the NUL at its end included.
func (r *reader) text(field string, limit int) string {
	remaining := r.pdu[r.offset:min(len(r.pdu), r.offset+limit)]
	value, _, found := bytes.Cut(remaining, []byte{0})
	if !found {
		r.fail(field, "does not end within "+strconv.Itoa(limit)+" octets")
		return ""
	}
	r.offset += len(value) + 1
	return string(value)
}

// address reads the three fields of an address; prefix is the beginning of their names.
func (r *reader) address(prefix string) Address {
	return Address{
		TON: r.octet(prefix + "_addr_ton"), NPI: r.octet(prefix + "_addr_npi"),
		Digits: r.text(prefix+"_addr", maxAddress),
	}
}

// readParameters reads the optional parameters of d. Some SMSCs add octets that belong to no
// field: NULs before the parameters, or anything after them. These octets are counted in
// d.Ignored and cause no error, except where they may be a part of the text or a damaged
// parameter that this package uses.
func (r *reader) readParameters(d *Delivery) {
	start := r.offset
	if d.Parameters = r.tlvs(); r.err == nil {
		return
	}
	// 1. Skip as few NULs as necessary to parse the remaining octets as parameters.
	for offset := start; offset < len(r.pdu) && r.pdu[offset] == 0; offset++ {
		padded := reader{pdu: r.pdu, offset: offset + 1}
		if list := padded.tlvs(); padded.err == nil {
			r.err, d.Parameters, d.Ignored = nil, list, offset+1-start
			return
		}
	}
	// 2. Ignore the octets after the last whole parameter.
	unread := r.pdu[r.tlvOffset:]
	if len(d.UserData()) > 0 && (len(unread) < 2 || !isUnderstood(binary.BigEndian.Uint16(unread))) {
		r.err, d.Ignored = nil, len(unread)
	}
}

// tlvs reads optional parameters up to the end of the PDU, or up to the first one that is
// incomplete.
func (r *reader) tlvs() (list []Parameter) {
	for r.offset < len(r.pdu) {
		r.tlvOffset = r.offset
		head := r.octets("tlv", 4)
		if r.err != nil {
			return list
		}
		value := r.octets("tlv", int(binary.BigEndian.Uint16(head[2:])))
		if r.err != nil {
			return list
		}
		list = append(list, Parameter{Tag: binary.BigEndian.Uint16(head), Value: value})
	}
	return list
}

// HeaderLen is the length of a PDU's header, in octets.
const HeaderLen = 16

// Command is a command_id (5.1.2.1).
type Command uint32

// The commands that the gateway handles. A response has the highest bit set.
const (
	GenericNack       Command = 0x80000000
	SubmitSM          Command = 0x00000004
	DeliverSM         Command = 0x00000005
	Unbind            Command = 0x00000006
	EnquireLink       Command = 0x00000015
	AlertNotification Command = 0x00000102
	DataSM            Command = 0x00000103
)

// Response reports whether the command is a response to another one.
func (c Command) Response() bool { return c&0x80000000 != 0 }

// Answer returns the command of the response to c.
func (c Command) Answer() Command { return c | 0x80000000 }

func (c Command) String() string { return fmt.Sprintf("0x%08X", uint32(c)) }

// Header is the beginning of every PDU.
type Header struct {
	Length   uint32 // of the whole PDU, in octets
	Command  Command
	Status   uint32
	Sequence uint32
}

// ParseHeader parses the first 16 octets of a PDU. It does not compare Length with the
// length of pdu, which may be incomplete.
func ParseHeader(pdu []byte) (Header, error) {
	if len(pdu) < HeaderLen {
		return Header{}, fault("header", len(pdu), "is incomplete")
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
