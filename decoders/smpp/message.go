package smpp

import (
	"encoding/binary"
	"strings"
)

// The optional parameters that are understood (5.3.2).
const (
	tagReceiptedMessageID = 0x001E
	tagReference          = 0x0204
	tagSARReference       = 0x020C
	tagSARTotal           = 0x020E
	tagSARNumber          = 0x020F
	tagMessagePayload     = 0x0424
	tagMessageState       = 0x0427
)

// isUnderstood reports whether the meaning of a message depends on a parameter.
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
	classUDHI         = 0x40 // the text begins with a user data header
)

// Parameter returns an optional parameter; of several the last counts.
func (d *Delivery) Parameter(tag uint16) ([]byte, bool) {
	for i := len(d.Parameters) - 1; i >= 0; i-- {
		if d.Parameters[i].Tag == tag {
			return d.Parameters[i].Value, true
		}
	}
	return nil, false
}

// number returns an optional parameter that is an unsigned number.
func (d *Delivery) number(tag uint16) (int, bool) {
	v, ok := d.Parameter(tag)
	if !ok || len(v) == 0 || len(v) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range v {
		n = n<<8 | int(c)
	}
	return n, true
}

// MessageID returns the id that the SMSC gives the message, or, in a receipt,
// gave the message it is about; empty if there is none.
func (d *Delivery) MessageID() string {
	v, _ := d.Parameter(tagReceiptedMessageID)
	id, _, _ := strings.Cut(string(v), "\x00")
	return strings.TrimSpace(id)
}

// Reference returns the user_message_reference: our own mark of a message, which
// some SMSCs give back in its receipts (5.3.2.17).
func (d *Delivery) Reference() (int, bool) { return d.number(tagReference) }

// IsReceipt reports whether the SMSC reports on a message of ours: esm_class marks it, or the
// optional parameters of receipts do, which some SMSCs send with an esm_class of 0.
// Acknowledgements by the handset or its user are messages.
func (d *Delivery) IsReceipt() bool {
	if d.ESMClass&(classReceipt|classIntermediate) != 0 {
		return true
	}
	_, stated := d.Parameter(tagMessageState)
	return stated && d.MessageID() != ""
}

// UserData returns the text as it came: the parameter message_payload if it is
// there, for a text that is in both is complete in it, else short_message.
func (d *Delivery) UserData() []byte {
	if payload, ok := d.Parameter(tagMessagePayload); ok && len(payload) > 0 {
		return payload
	}
	return d.ShortMessage
}

// Split returns the user data header, with its length octet, and the text
// behind it. It is false when there should be a header that reaches beyond what
// is there.
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

// Segment returns what the sar parameters say. They must all be there and make
// sense, else they are ignored, as SMPP requires.
func (d *Delivery) Segment() (Segment, bool) {
	reference, found := d.Parameter(tagSARReference)
	total, counted := d.number(tagSARTotal)
	number, numbered := d.number(tagSARNumber)
	if !found || len(reference) != 2 || !counted || !numbered || number < 1 || number > total || total > 255 {
		return Segment{}, false
	}
	return Segment{Reference: binary.BigEndian.Uint16(reference), Total: total, Number: number}, true
}

// Coding is the encoding of a text.
type Coding int

// The codings. Default is the SMSC's own alphabet, which the carrier says
// outside the protocol.
const (
	Default Coding = iota
	ASCII
	Latin1   // ISO 8859-1
	Cyrillic // ISO 8859-5
	Hebrew   // ISO 8859-8
	UCS2
	Octets // data, or text in a coding that is not known
)

// CodingOf reads a data_coding: SMPP's own values (5.2.19), and those of a
// handset's data coding scheme (TS 23.038, 4) that SMSCs pass on: 0x10 to 0x1F
// with a message class, 0xC0 to 0xEF waiting messages, 0xF0 to 0xFF classes.
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

// Alphabet is the encoding of an SMSC for text of data_coding 0, its default alphabet. It is
// agreed with the carrier, outside the protocol. Empty means AlphabetGSM7.
type Alphabet string

// The default alphabets of SMSCs.
const (
	AlphabetGSM7   Alphabet = "gsm7"        // a septet in each octet, as nearly all do
	AlphabetPacked Alphabet = "gsm7-packed" // septets packed as on the air
	AlphabetLatin1 Alphabet = "latin1"      // ISO 8859-1
)
