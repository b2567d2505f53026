package sms

import (
	"encoding/binary"

	"github.com/penstock/penstock/decoders"
)

// Identifiers of the information elements that this package uses (TS 23.040,
// 9.2.3.24).
const (
	Concat8  = 0x00 // concatenated message, 8-bit reference
	Ports16  = 0x05 // application ports, 16 bits each
	Concat16 = 0x08 // concatenated message, 16-bit reference
	// National language tables, see Languages.
	SingleShift  = 0x24
	LockingShift = 0x25
)

// Element is one information element of a user data header.
type Element struct {
	ID   byte
	Data []byte
}

// UDH is a user data header: its elements in order.
type UDH []Element

// Ports returns the element that addresses a message to an application port
// (TS 23.040, 9.2.3.24.4).
func Ports(destination, source uint16) Element {
	data := binary.BigEndian.AppendUint16(nil, destination)
	return Element{ID: Ports16, Data: binary.BigEndian.AppendUint16(data, source)}
}

// ParseUDH parses a user data header with its length octet; data may be empty. The
// elements share memory with data. The error is a *decoders.Error with format "udh".
func ParseUDH(data []byte) (UDH, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if int(data[0]) != len(data)-1 {
		return nil, udhError("length", 0, "is not the number of octets after it")
	}
	var h UDH
	for offset := 1; offset < len(data); {
		if offset+2 > len(data) {
			return nil, udhError("element", offset, "ends too early")
		}
		end := offset + 2 + int(data[offset+1])
		if end > len(data) {
			return nil, udhError("element", offset, "reaches beyond the header")
		}
		h = append(h, Element{ID: data[offset], Data: data[offset+2 : end]})
		offset = end
	}
	return h, nil
}

func udhError(field string, offset int, reason string) error {
	return &decoders.Error{Format: "udh", Field: field, Offset: offset, Reason: reason}
}

// Append appends the header with its length octet to dst, or nothing if the header has no
// elements. The elements must fit 255 octets.
func (h UDH) Append(dst []byte) []byte {
	if len(h) == 0 {
		return dst
	}
	offset := len(dst)
	dst = append(dst, 0)
	for _, e := range h {
		dst = append(append(dst, e.ID, byte(len(e.Data))), e.Data...)
	}
	dst[offset] = byte(len(dst) - offset - 1)
	return dst
}

// Concat identifies a short message as one part of a message.
type Concat struct {
	Reference uint16
	Wide      bool // Reference has 16 bits, else 8
	Total     int  // 1 to 255
	Part      int  // 1 to Total
}

// Concat returns the header's concatenation, the last one if there are several. It ignores
// one whose part number is 0 or larger than the total (TS 23.040, 9.2.3.24.1).
func (h UDH) Concat() (Concat, bool) {
	var found Concat
	for _, e := range h {
		if c, ok := e.concat(); ok {
			found = c
		}
	}
	return found, found.Total > 0
}

func (e Element) concat() (c Concat, ok bool) {
	switch {
	case e.ID == Concat8 && len(e.Data) == 3:
		c = Concat{Reference: uint16(e.Data[0]), Total: int(e.Data[1]), Part: int(e.Data[2])}
	case e.ID == Concat16 && len(e.Data) == 4:
		c = Concat{Reference: binary.BigEndian.Uint16(e.Data), Wide: true, Total: int(e.Data[2]), Part: int(e.Data[3])}
	}
	return c, c.Part >= 1 && c.Part <= c.Total
}
