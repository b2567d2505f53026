package smpp

import (
	"encoding/binary"
	"strings"
)

// The optional parameters that this package uses (5.3.2).
const (
	tagReceiptedMessageID = 0x001E
	tagReference          = 0x0204
	tagSARReference       = 0x020C
	tagSARTotal           = 0x020E
	tagSARNumber          = 0x020F
	tagMessagePayload     = 0x0424
	tagMessageState       = 0x0427
)

// isUnderstood reports whether this package uses an optional parameter.
func isUnderstood(tag uint16) bool {
	switch tag {
	case tagReceiptedMessageID, tagReference, tagSARReference, tagSARTotal, tagSARNumber, tagMessagePayload, tagMessageState:
		return true
	}
	return false
}

// Bits of esm_class (5.2.12).
const (
	classReceipt      = 0x04 // SMSC delivery receipt
	classIntermediate = 0x20 // intermediate delivery notification
	classUDHI         = 0x40 // the user data begins with a user data header
)

// parameter returns the value of an optional parameter, the last one if it is repeated.
func (d *Delivery) parameter(tag uint16) ([]byte, bool) {
	for i := len(d.Parameters) - 1; i >= 0; i-- {
		if d.Parameters[i].Tag == tag {
			return d.Parameters[i].Value, true
		}
	}
	return nil, false
}

// number returns the value of an optional parameter of one or two octets.
func (d *Delivery) number(tag uint16) (int, bool) {
	v, ok := d.parameter(tag)
	if !ok || len(v) == 0 || len(v) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range v {
		n = n<<8 | int(c)
	}
	return n, true
}

// MessageID returns the parameter receipted_message_id, the SMSC's id of a message. It is
// empty if the parameter is missing.
func (d *Delivery) MessageID() string {
	v, _ := d.parameter(tagReceiptedMessageID)
	id, _, _ := strings.Cut(string(v), "\x00")
	return strings.TrimSpace(id)
}

// Reference returns the parameter user_message_reference (5.3.2.17). In a receipt it is the
// reference of the submitted message (see ReferenceOf), if the SMSC supports it.
func (d *Delivery) Reference() (int, bool) { return d.number(tagReference) }

// IsReceipt reports whether the PDU is an SMSC's receipt for a submitted message. It has the
// esm_class of a receipt, or the optional parameters of one: some SMSCs leave esm_class 0.
// Acknowledgements by the handset or by its user are not receipts.
func (d *Delivery) IsReceipt() bool {
	if d.ESMClass&(classReceipt|classIntermediate) != 0 {
		return true
	}
	_, hasState := d.parameter(tagMessageState)
	return hasState && d.MessageID() != ""
}

// UserData returns the user data header and the text. These are in message_payload or, if
// that is missing or empty, in short_message. If an SMSC sends both, only message_payload is
// complete.
func (d *Delivery) UserData() []byte {
	if payload, ok := d.parameter(tagMessagePayload); ok && len(payload) > 0 {
		return payload
	}
	return d.ShortMessage
}

// Split splits the user data into its header, with the length octet, and the text. ok is
// false if esm_class announces a header and the user data is shorter than the header's length.
func (d *Delivery) Split() (udh, text []byte, ok bool) {
	data := d.UserData()
	if d.ESMClass&classUDHI == 0 {
		return nil, data, true
	}
	if len(data) == 0 || int(data[0])+1 > len(data) {
		return nil, data, false
	}
	end := int(data[0]) + 1
	return data[:end:end], data[end:], true
}

// Segment identifies a delivery as one part of a message (5.3.2.22 to 24).
type Segment struct {
	Reference uint16
	Total     int // 1 to 255
	Number    int // 1 to Total
}

// Segment returns the values of the SAR parameters. It returns false if one is missing or
// invalid, because SMPP requires that all are ignored then.
func (d *Delivery) Segment() (Segment, bool) {
	reference, found := d.parameter(tagSARReference)
	total, hasTotal := d.number(tagSARTotal)
	number, hasNumber := d.number(tagSARNumber)
	if !found || len(reference) != 2 || !hasTotal || !hasNumber || number < 1 || number > total || total > 255 {
		return Segment{}, false
	}
	return Segment{Reference: binary.BigEndian.Uint16(reference), Total: total, Number: number}, true
}

// Coding is the encoding of a text.
type Coding int

// The codings. Default is the default alphabet of the SMSC, see Alphabet.
const (
	Default Coding = iota
	ASCII
	Latin1   // ISO 8859-1
	Cyrillic // ISO 8859-5
	Hebrew   // ISO 8859-8
	UCS2
	Octets // binary data, or text in an unknown coding
)

// CodingOf returns the coding of a data_coding: one of SMPP (5.2.19) or, because SMSCs
// forward them, of a handset's data coding scheme (TS 23.038, 4). The latter are 0x10 to 0x1F
// and 0xF0 to 0xFF for messages with a class, and 0xC0 to 0xEF for message waiting
// indications.
func CodingOf(dataCoding byte) Coding {
	switch {
	case dataCoding < 0x09:
		return [...]Coding{Default, ASCII, Octets, Latin1, Octets, Octets, Cyrillic, Hebrew, UCS2}[dataCoding]
	case dataCoding < 0x10:
		return Octets
	case dataCoding < 0x20: // bits 3 and 2
		return [...]Coding{Default, Octets, UCS2, Octets}[dataCoding>>2&3]
	case dataCoding >= 0xF0 && dataCoding&0x04 != 0:
		return Octets
	case dataCoding >= 0xF0, dataCoding >= 0xC0 && dataCoding < 0xE0:
		return Default
	case dataCoding >= 0xE0:
		return UCS2
	}
	return Octets
}

// Alphabet is the encoding of text with data_coding 0, the default alphabet of an SMSC. The
// protocol does not transmit it; the operator configures it for each carrier. Empty means
// AlphabetGSM7.
type Alphabet string

// The default alphabets of SMSCs.
const (
	AlphabetGSM7   Alphabet = "gsm7"        // one septet in each octet, the usual encoding
	AlphabetPacked Alphabet = "gsm7-packed" // septets packed as on the radio interface
	AlphabetLatin1 Alphabet = "latin1"      // ISO 8859-1
)
