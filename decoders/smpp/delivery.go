package smpp

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/decoders"
)

// The longest values of C-octet strings, with their end. deliver_sm allows 21
// octets of an address and 6 of a service type, data_sm 65; SMSCs do not always
// keep to the former.
const (
	maxAddress = 65
	maxService = 21
	maxTime    = 17
)

// Address is a source or a destination.
type Address struct {
	TON, NPI byte
	Digits   string // or an alphanumeric name, in whatever the SMSC writes it
}

// Alphanumeric is the type of number of a name (5.2.5).
const Alphanumeric = 5

// Parameter is an optional parameter (TLV).
type Parameter struct {
	Tag   uint16
	Value []byte
}

// Delivery is a deliver_sm or a data_sm.
type Delivery struct {
	Header
	ServiceType        string
	Source             Address
	Destination        Address
	ESMClass           byte
	ProtocolID         byte // 0 in a data_sm
	RegisteredDelivery byte
	DataCoding         byte
	ShortMessage       []byte // nil in a data_sm
	Parameters         []Parameter
	// Ignored is the number of octets behind the message that are not optional
	// parameters.
	Ignored int
}

// ParseDelivery reads a whole deliver_sm or data_sm. What it returns shares
// memory with pdu. Its error names the field as SMPP does, with tlv for the
// optional parameters, and command_id for another command.
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
	d.ServiceType = r.text("service_type", maxService)
	d.Source, d.Destination = r.address("source"), r.address("destination")
	d.ESMClass = r.octet("esm_class")
	if h.Command == DataSM {
		d.RegisteredDelivery, d.DataCoding = r.octet("registered_delivery"), r.octet("data_coding")
	} else {
		d.ProtocolID = r.octet("protocol_id")
		r.octet("priority_flag")
		r.text("schedule_delivery_time", maxTime)
		r.text("validity_period", maxTime)
		d.RegisteredDelivery = r.octet("registered_delivery")
		r.octet("replace_if_present_flag")
		d.DataCoding = r.octet("data_coding")
		r.octet("sm_default_msg_id")
		d.ShortMessage = r.octets("short_message", int(r.octet("sm_length")))
	}
	if r.err == nil {
		r.parameters(d)
	}
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// reader reads the fields of a PDU and keeps the first error.
type reader struct {
	pdu    []byte
	offset int
	err    error
	unread int // where the last optional parameter begins
}

func (r *reader) fail(field string, reason string) {
	if r.err == nil {
		r.err = fault(field, r.offset, reason)
	}
	r.offset = len(r.pdu)
}

func (r *reader) octet(field string) byte {
	if r.offset >= len(r.pdu) {
		r.fail(field, "is not there")
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

// text reads a C-octet string of at most limit octets with its end.
func (r *reader) text(field string, limit int) string {
	for i, c := range r.pdu[r.offset:min(len(r.pdu), r.offset+limit)] {
		if c == 0 {
			s := string(r.pdu[r.offset : r.offset+i])
			r.offset += i + 1
			return s
		}
	}
	r.fail(field, "does not end within "+strconv.Itoa(limit)+" octets")
	return ""
}

func (r *reader) address(which string) Address {
	return Address{
		TON: r.octet(which + "_addr_ton"), NPI: r.octet(which + "_addr_npi"),
		Digits: r.text(which+"_addr", maxAddress),
	}
}

// parameters reads the optional parameters. Some SMSCs end a message with octets that
// belong to no field: NULs in front of the parameters, or octets that are none. They are
// counted, unless the parameters or the text may be among them.
func (r *reader) parameters(d *Delivery) {
	start := r.offset
	if d.Parameters = r.list(); r.err == nil {
		return
	}
	for offset := start; offset < len(r.pdu) && r.pdu[offset] == 0; offset++ {
		padded := reader{pdu: r.pdu, offset: offset + 1}
		if list := padded.list(); padded.err == nil {
			r.err, d.Parameters, d.Ignored = nil, list, offset+1-start
			return
		}
	}
	unread := r.pdu[r.unread:]
	if len(d.UserData()) > 0 && (len(unread) < 2 || !isUnderstood(binary.BigEndian.Uint16(unread))) {
		r.err, d.Ignored = nil, len(unread)
	}
}

// list reads parameters up to the end of the PDU, or up to the first that does not fit.
func (r *reader) list() (list []Parameter) {
	for r.offset < len(r.pdu) {
		r.unread = r.offset
		head := r.octets("tlv", 4)
		if r.err != nil {
			return list
		}
		p := Parameter{Tag: binary.BigEndian.Uint16(head)}
		if p.Value = r.octets("tlv", int(binary.BigEndian.Uint16(head[2:]))); r.err != nil {
			return list
		}
		list = append(list, p)
	}
	return list
}

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

// ParseHeader reads the first 16 octets of a PDU. Whether its length is the PDU's is for
// callers that have the end of the PDU.
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
