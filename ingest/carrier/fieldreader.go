package carrier

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// The maximum sizes of fields, in bytes. maxText exceeds the octets of 255 parts.
const (
	maxName = 255
	maxText = 64 << 10
	maxUDH  = 256
)

// fieldReader reads the fields of a post, and collects the problems found in them.
type fieldReader struct {
	relay.Problems
	object
	alphabet *sms.Alphabet // of the texts of messages; nil for receipts
	strict   bool          // refuses booleans instead of reading them as text
}

func newFieldReader(alphabet *sms.Alphabet, o object) *fieldReader {
	return &fieldReader{Problems: relay.Problems{}, object: o, alphabet: alphabet}
}

// optional returns a text of at most limit bytes, or "" if the field is missing.
func (f *fieldReader) optional(name string, limit int) string {
	text, ok := textOf(f.object[name])
	_, isBool := f.object[name].(bool)
	switch {
	case !ok || f.strict && isBool:
		f.Add(name, "The "+name+" must be a string.")
	case len(text) > limit:
		f.Add(name, fmt.Sprintf("The %s may not be longer than %d bytes.", name, limit))
	default:
		return text
	}
	return ""
}

// required returns a text of at most limit bytes. It adds a problem if the text is missing or
// empty.
func (f *fieldReader) required(name string, limit int) string {
	oldCount := len(f.Problems)
	s := f.optional(name, limit)
	if s == "" && len(f.Problems) == oldCount {
		f.Add(name, "The "+name+" field is required.")
	}
	return s
}

func (f *fieldReader) hex(name string, limit int) []byte {
	b, err := hex.DecodeString(f.optional(name, 2*limit))
	if err != nil {
		f.Add(name, "The "+name+" must be hexadecimal octets.")
		return nil
	}
	return b
}

func (f *fieldReader) setAddresses(m *inbound.Message, originator, destination string) {
	m.From, m.To = f.required(originator, maxName), f.required(destination, maxName)
	if !utf8.ValidString(m.From) {
		f.Add(originator, "The "+originator+" is not UTF-8.")
	}
	if number, ok := relay.NumberFrom(m.From); ok {
		m.From = number
	}
	if m.To == "" {
		return
	}
	number, ok := relay.NumberFrom(m.To)
	if !ok || len(number) > 15 {
		f.Add(destination, "The "+destination+" must be a number of 1 to 15 digits.")
	}
	m.To = number
}

// utf8Text returns a required text, which may be empty, as valid UTF-8.
func (f *fieldReader) utf8Text(name string) string {
	if !f.has(name) {
		f.Add(name, "The "+name+" field is required.")
	}
	return strings.ToValidUTF8(f.optional(name, maxText), "\uFFFD")
}

// setText reads a text that the carrier has decoded. The URLs of media follow the text.
func (f *fieldReader) setText(m *inbound.Message, name string, media []string) {
	var text []string
	if f.has(name) && f.object[name] != "" || len(media) == 0 {
		text = []string{f.utf8Text(name)}
	}
	m.Text = strings.ToValidUTF8(strings.Join(append(text, media...), "\n"), "\uFFFD")
	m.Coding = codingOf(f.alphabet, m.Text)
}

func (f *fieldReader) message(m inbound.Message) ([]inbound.Message, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return []inbound.Message{m}, nil
}

// sar reads the segmentation parameters of SMPP (3.4, 5.3.2.22 to 5.3.2.24). It returns nil if
// there are none.
func (f *fieldReader) sar() *inbound.Part {
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

// integer returns a required number from minimum to maximum.
func (f *fieldReader) integer(name string, minimum, maximum int) int {
	n, err := decimal.PlainInt(f.optional(name, maxName))
	if err != nil || n < int64(minimum) || n > int64(maximum) {
		f.Add(name, fmt.Sprintf("The %s must be a number from %d to %d.", name, minimum, maximum))
		return 0
	}
	return int(n)
}

// statusOf returns the Stat of a message whose parts have not been joined.
func statusOf(m *inbound.Message) inbound.Stat {
	if m.Part != nil && m.Part.Total > 0 {
		return inbound.Concatenated
	}
	return inbound.StatOf(m.UDH)
}

// keepOctets keeps the octets of a part's text, because a character may continue in the
// next part.
func keepOctets(m *inbound.Message, octets []byte) {
	if _, ok := inbound.PartOf(m); ok {
		m.Octets = octets
	}
}

// decodeSeptets decodes 7-bit text with the language tables in the header. For an unknown table it
// uses the default alphabet and sets Stat to Indecipherable.
func decodeSeptets(alphabet *sms.Alphabet, m *inbound.Message, octets []byte) (string, error) {
	l := inbound.LanguagesOf(m)
	if l != l.Known() {
		m.Stat = inbound.Indecipherable
	}
	return alphabet.DecodeIn(l, octets)
}

// decodeUTF16 decodes UTF-16. A part may end inside a character.
func decodeUTF16(m *inbound.Message, octets []byte) string {
	keepOctets(m, octets)
	switch {
	case len(octets)%2 == 0:
	case m.Octets != nil:
		octets = octets[:len(octets)&^1]
	case octets[len(octets)-1] != 0:
		m.Notes.Add("the UTF-16 text ends with half a character")
	}
	return sms.DecodeUCS2(octets)
}
