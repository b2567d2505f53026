package smpp

import (
	"encoding/binary"
	"strconv"
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
	r := reader{pdu: pdu, at: HeaderLen}
	d := &Delivery{Header: h}
	switch h.Command {
	case DeliverSM:
		r.deliverSM(d)
	case DataSM:
		r.dataSM(d)
	default:
		return nil, fault("command_id", 4, h.Command.String()+" does not carry a message")
	}
	d.Parameters = r.parameters()
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

func (r *reader) deliverSM(d *Delivery) {
	d.ServiceType = r.text("service_type", maxService)
	d.Source, d.Destination = r.address("source"), r.address("destination")
	d.ESMClass, d.ProtocolID = r.octet("esm_class"), r.octet("protocol_id")
	r.octet("priority_flag")
	r.text("schedule_delivery_time", maxTime)
	r.text("validity_period", maxTime)
	d.RegisteredDelivery = r.octet("registered_delivery")
	r.octet("replace_if_present_flag")
	d.DataCoding = r.octet("data_coding")
	r.octet("sm_default_msg_id")
	d.ShortMessage = r.octets("short_message", int(r.octet("sm_length")))
}

func (r *reader) dataSM(d *Delivery) {
	d.ServiceType = r.text("service_type", maxService)
	d.Source, d.Destination = r.address("source"), r.address("destination")
	d.ESMClass, d.RegisteredDelivery, d.DataCoding = r.octet("esm_class"), r.octet("registered_delivery"), r.octet("data_coding")
}

// reader reads the fields of a PDU and keeps the first error.
type reader struct {
	pdu []byte
	at  int
	err error
}

func (r *reader) fail(field string, reason string) {
	if r.err == nil {
		r.err = fault(field, r.at, reason)
	}
	r.at = len(r.pdu)
}

func (r *reader) octet(field string) byte {
	if r.at >= len(r.pdu) {
		r.fail(field, "is not there")
		return 0
	}
	r.at++
	return r.pdu[r.at-1]
}

func (r *reader) octets(field string, n int) []byte {
	if n > len(r.pdu)-r.at {
		r.fail(field, "reaches beyond the PDU")
		return nil
	}
	r.at += n
	return r.pdu[r.at-n : r.at : r.at]
}

// text reads a C-octet string of at most limit octets with its end.
func (r *reader) text(field string, limit int) string {
	for i, c := range r.pdu[r.at:min(len(r.pdu), r.at+limit)] {
		if c == 0 {
			s := string(r.pdu[r.at : r.at+i])
			r.at += i + 1
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

func (r *reader) parameters() (list []Parameter) {
	for r.err == nil && r.at < len(r.pdu) {
		head := r.octets("tlv", 4)
		if r.err != nil {
			return nil
		}
		p := Parameter{Tag: binary.BigEndian.Uint16(head)}
		p.Value = r.octets("tlv", int(binary.BigEndian.Uint16(head[2:])))
		list = append(list, p)
	}
	return list
}
