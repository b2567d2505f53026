package sms

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// Octets is a message in encoded form: a binary message of a customer, a WAP push or a contact
// card.
type Octets struct {
	Coding Coding
	Header UDH    // with a concatenation only if Data fits one part
	Data   []byte // for GSM unpacked, one septet in each octet
}

// ParseHex parses a binary message: data and user data header in hexadecimal,
// and the encoding 7 (unpacked septets), 8 or 16 (big-endian UTF-16); 0 means 8.
// The header begins with its length octet and may be empty. Blanks around data and header
// are ignored, as for xs:hexBinary.
//
// It returns a decoders.Error with the field "data", "udh" or "encoding". The offset counts
// characters if the field is not hexadecimal, else octets.
func ParseHex(data, udh string, encoding int) (Octets, error) {
	o := Octets{Coding: Coding(encoding)}
	if encoding == 0 {
		o.Coding = Binary
	}
	raw, err := decodeHex("udh", udh)
	if err != nil {
		return Octets{}, err
	}
	if o.Header, err = ParseUDH(raw); err != nil {
		if e, ok := errors.AsType[*decoders.Error](err); ok {
			err = newError("udh", e.Offset, e.Reason)
		}
		return Octets{}, err
	}
	if o.Data, err = decodeHex("data", data); err != nil {
		return Octets{}, err
	}
	return o, o.check()
}

// Split splits a message into parts. If the data does not fit one part, the parts are concatenated
// with the reference, and the concatenation follows the elements of the header.
//
// It returns a decoders.Error with format "sms" and one of these fields:
//
//   - "data": the message is empty, invalid in its coding or needs more than 255 parts;
//   - "udh": the header leaves no room for data, or has a concatenation although the data
//     needs several parts;
//   - "encoding": the coding is not 7, 8 or 16.
func (o Octets) Split(reference byte) (Message, error) {
	if err := o.check(); err != nil {
		return Message{}, err
	}
	if fitted := truncate(o.Data, o.Coding, o.Header, MaxParts); len(fitted) < len(o.Data) {
		return Message{}, newError("data", len(fitted), "needs more than 255 parts")
	}
	m := Message{Coding: o.Coding, Parts: splitCode(o.Data, o.Coding, o.Header, reference)}
	if o.Coding != Binary {
		New().setTexts(m.Parts)
	}
	return m, nil
}

func (o Octets) check() error {
	if !slices.Contains([]Coding{GSM, Binary, UCS2}, o.Coding) {
		return newError("encoding", -1, "is not 7, 8 or 16")
	}
	if len(o.Data) == 0 && len(o.Header) == 0 {
		return newError("data", 0, "is empty")
	}
	// Refuse octets that the coding does not define. An escape before an escape is reserved
	// for a further table (TS 23.038, 6.2.1.1) that is not defined yet.
	if o.Coding == UCS2 && len(o.Data)%2 != 0 {
		return newError("data", len(o.Data)-1, "has an odd number of octets")
	}
	if o.Coding == GSM {
		if i := slices.IndexFunc(o.Data, func(c byte) bool { return c > 0x7F }); i >= 0 {
			return newError("data", i, "octet above 0x7F in 7-bit text")
		}
		if i := bytes.Index(o.Data, []byte{escape, escape}); i >= 0 {
			return newError("data", i, "escape before an escape")
		}
	}
	// Refuse a header that leaves no room for the whole data in one part, or for at least one
	// character in each of several parts.
	const minRoom = 4 // octets of a surrogate pair, the longest character
	headerLen := len(o.Header.Append(nil))
	if len(o.Data) <= room(o.Coding, headerLen) {
		return nil
	}
	hasConcat := slices.ContainsFunc(o.Header, func(e Element) bool { return e.ID == Concat8 || e.ID == Concat16 })
	if hasConcat && headerLen <= MaxOctets {
		return newError("udh", 0, "has a concatenation, yet the data does not fit one part")
	}
	if room(o.Coding, max(headerLen, 1)+concatenation) < minRoom {
		return newError("udh", 0, "leaves no room for data")
	}
	return nil
}

// decodeHex decodes hexadecimal digits. The error has the offset of the first invalid character.
func decodeHex(field, s string) ([]byte, error) {
	digits := strings.Trim(s, " \t\r\n")
	start := strings.Index(s, digits)
	i := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
	if i >= 0 {
		return nil, newError(field, start+i, "is not a hexadecimal digit")
	}
	if len(digits)%2 != 0 {
		return nil, newError(field, start+len(digits)-1, "odd number of hexadecimal digits")
	}
	return hex.DecodeString(digits)
}
