package inbound

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders/sms"
)

// gap replaces missing parts in a text.
const gap = "[…]"

// assembler makes one message of parts.
type assembler struct{ alphabet *sms.Alphabet }

// assemble joins the parts of a message, in any order, and returns the numbers
// of those that are missing. The parts are those of one group, each once.
//
// Octets of neighbours are decoded together, so that an escape or a surrogate
// pair may lie across their border. Text has a mark for each gap; data cannot
// have one. If any part is binary all are taken as octets.
func (a assembler) assemble(parts []Message) (m Message, missing []int) {
	parts = slices.SortedFunc(slices.Values(parts), func(x, y Message) int { return numberOf(&x) - numberOf(&y) })
	m = parts[0]
	part, _ := PartOf(&m)
	m.Part, m.Octets, m.Status = nil, nil, Concatenated
	if slices.ContainsFunc(parts, func(p Message) bool { return p.Status == Indecipherable }) {
		m.Status = Indecipherable
	}
	m.CarrierID, m.UDH, m.Coding = "", otherElements(m.UDH), codingOfAll(parts)
	for i := range parts {
		if parts[i].ReceivedAt.After(m.ReceivedAt) {
			m.ReceivedAt = parts[i].ReceivedAt
		}
	}
	m.Notes = nil
	for i := range parts {
		m.Notes.Add(parts[i].Notes...)
	}
	missing = missingOf(parts, part.Total)
	m.Text, m.Data = "", nil
	if m.Coding == sms.Binary {
		for i := range parts {
			m.Data = append(m.Data, octetsOf(&parts[i])...)
		}
		return m, missing
	}
	m.Text = a.text(parts, part.Total)
	TrimText(&m)
	return m, missing
}

func numberOf(m *Message) int {
	p, _ := PartOf(m)
	return p.Number
}

func missingOf(parts []Message, total int) (missing []int) {
	for n := 1; n <= total; n++ {
		if !slices.ContainsFunc(parts, func(m Message) bool { return numberOf(&m) == n }) {
			missing = append(missing, n)
		}
	}
	return missing
}

// otherElements is a UDH without its concatenation.
func otherElements(udh []byte) []byte {
	header, err := sms.ParseUDH(udh)
	if err != nil {
		return udh
	}
	return slices.DeleteFunc(header, func(e sms.Element) bool { return e.ID == sms.Concat8 || e.ID == sms.Concat16 }).Append(nil)
}

// codingOfAll is the widest of the parts' codings.
func codingOfAll(parts []Message) sms.Coding {
	coding := sms.GSM
	for i := range parts {
		switch {
		case parts[i].Coding == sms.Binary:
			return sms.Binary
		case parts[i].Coding == sms.UCS2:
			coding = sms.UCS2
		}
	}
	return coding
}

func octetsOf(m *Message) []byte {
	switch {
	case m.Coding == sms.Binary:
		return m.Data
	case len(m.Octets) > 0:
		return m.Octets
	}
	return []byte(m.Text)
}

// text joins the texts of sorted parts.
func (a assembler) text(parts []Message, total int) string {
	var b strings.Builder
	number := 1
	for i := 0; i < len(parts); {
		if numberOf(&parts[i]) != number {
			b.WriteString(gap)
		}
		end := i + 1
		for end < len(parts) && sameMessage(&parts[end-1], &parts[end]) {
			end++
		}
		b.WriteString(a.run(parts[i:end]))
		number, i = numberOf(&parts[end-1])+1, end
	}
	if number <= total {
		b.WriteString(gap)
	}
	return b.String()
}

// together reports whether the octets of two parts must be decoded as one.
func sameMessage(a, b *Message) bool {
	return numberOf(b) == numberOf(a)+1 && a.Coding == b.Coding && len(a.Octets) > 0 && len(b.Octets) > 0 &&
		LanguagesOf(a) == LanguagesOf(b)
}

// run decodes parts that follow one another. Octets that the coding does not
// have, which no adapter lets pass, leave each part its own text.
func (a assembler) run(parts []Message) string {
	var octets [][]byte
	text := ""
	for i := range parts {
		octets, text = append(octets, parts[i].Octets), text+parts[i].Text
	}
	switch {
	case len(parts[0].Octets) == 0:
		return text
	case parts[0].Coding == sms.UCS2:
		return sms.DecodeUCS2(sms.JoinUCS2(octets))
	}
	joined, err := a.alphabet.DecodeIn(LanguagesOf(&parts[0]), bytes.Join(octets, nil))
	if err != nil {
		return text
	}
	return joined
}
