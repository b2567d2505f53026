package carrier

import (
	"strconv"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/inbound"
)

// sar reads the segmentation parameters of SMPP (3.4, 5.3.2.22 to 5.3.2.24), which have
// their names from there; nil if there are none.
func (f *form) sar() *inbound.Part {
	const reference, total, number = "sar_msg_ref_num", "sar_total_segments", "sar_segment_seqnum"
	if !f.has(reference) && !f.has(total) && !f.has(number) {
		return nil
	}
	p := &inbound.Part{
		Kind: inbound.ReferenceSAR, Reference: uint16(f.integer(reference, 0, 0xFFFF)),
		Total: f.integer(total, 1, 255),
	}
	p.Number = f.integer(number, 1, max(p.Total, 1))
	return p
}

// integer returns a required number within bounds.
func (f *form) integer(name string, start, end int) int {
	n, err := decimal.Digits(f.optional(name, maxName))
	if err != nil || n < int64(start) || n > int64(end) {
		f.Add(name, "The "+name+" must be a number from "+strconv.Itoa(start)+" to "+strconv.Itoa(end)+".")
		return 0
	}
	return int(n)
}

// statusOf returns %stat of a message whose parts have not been joined.
func statusOf(m *inbound.Message) inbound.Status {
	if m.Part != nil && m.Part.Total > 0 {
		return inbound.Concatenated
	}
	return inbound.StatusOf(m.UDH)
}

// keepOctets keeps the octets of a part's text, because a character may continue in the
// next part.
func keepOctets(m *inbound.Message, octets []byte) {
	if _, ok := inbound.PartOf(m); ok {
		m.Octets = octets
	}
}

// septetText decodes 7-bit text with the language tables that its header names. For an
// unknown table it uses the default alphabet, and %stat says so.
func septetText(alphabet *sms.Alphabet, m *inbound.Message, octets []byte) (string, error) {
	l := inbound.LanguagesOf(m)
	if l != l.Known() {
		m.Status = inbound.Indecipherable
	}
	return alphabet.DecodeIn(l, octets)
}

// wideText decodes UTF-16. A part may end inside a character.
func wideText(m *inbound.Message, octets []byte) string {
	keepOctets(m, octets)
	switch {
	case len(octets)%2 == 0:
	case m.Octets != nil:
		octets = octets[:len(octets)&^1]
	case octets[len(octets)-1] != 0:
		m.Notes.Add("its UTF-16 ends with half a character")
	}
	return sms.DecodeUCS2(octets)
}
