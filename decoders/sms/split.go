package sms

import "github.com/warthog618/sms/encoding/tpdu"

// highSurrogate begins a pair of UTF-16 (0xD8 to 0xDB, RFC 2781). It is never the last
// of a part, and neither is escape.
const highSurrogate = 0xD8

// concatenation is the length in octets that an 8-bit reference adds to a header.
const concatenation = 5

// fit returns the beginning of code that so many parts hold: all of it, or up
// to the last whole character.
func fit(code []byte, c Coding, header UDH, limit int) []byte {
	alone := room(c, len(header.Append(nil)))
	switch {
	case len(code) <= alone:
		return code
	case limit == 1:
		return code[:characterBoundary(code, c, alone)]
	}
	// A concatenated part holds less than one alone, so that what is left off here
	// cannot fit, and the boundaries before it stay where they are.
	chunks := chunksOf(code[:min(len(code), limit*alone)], c, header, 0)
	length := 0
	for _, t := range chunks[:min(limit, len(chunks))] {
		length += len(t.UD)
	}
	return code[:length]
}

// characterBoundary moves a cut in front of the character that it would split.
func characterBoundary(code []byte, c Coding, offset int) int {
	switch {
	case c == GSM && code[offset-1] == escape:
		return offset - 1
	case c == UCS2 && code[offset-2]&0xFC == highSurrogate:
		return offset - 2
	}
	return offset
}

// parts makes the short messages of what fit found to fit 255 of them.
func parts(code []byte, c Coding, header UDH, reference byte) []Part {
	udh := header.Append(nil)
	if len(code) <= room(c, len(udh)) {
		return []Part{{Coding: c, UDH: udh, Data: code}}
	}
	chunks := chunksOf(code, c, header, reference)
	list := make([]Part, len(chunks))
	for i, t := range chunks {
		list[i] = Part{Coding: c, UDH: headerOf(t.UDH).Append(nil), Data: t.UD}
	}
	return list
}

// chunksOf has the library draw the boundaries. The code must need several
// parts and the header leave room for a character in each.
func chunksOf(code []byte, c Coding, header UDH, reference byte) []tpdu.TPDU {
	var t tpdu.TPDU
	t.SetDCS(map[Coding]byte{GSM: 0x00, Binary: 0x04, UCS2: 0x08}[c])
	var udh tpdu.UserDataHeader
	for _, e := range header {
		udh = append(udh, tpdu.InformationElement{ID: e.ID, Data: e.Data})
	}
	t.SetUDH(udh)
	return t.Segment(code, tpdu.WithConcatRef(fixed(reference)))
}

func headerOf(udh tpdu.UserDataHeader) UDH {
	header := make(UDH, len(udh))
	for i, e := range udh {
		header[i] = Element{ID: e.ID, Data: e.Data}
	}
	return header
}

// fixed is a reference that is known, where the library would count.
type fixed byte

// Count returns the reference.
func (f fixed) Count() int { return int(f) }
