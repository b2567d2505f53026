package inbound

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders/sms"
)

// gap stands for missing parts in a text.
const gap = "[…]"

// assembler joins the parts of messages.
type assembler struct{ alphabet *sms.Alphabet }

// assemble joins distinct parts of one group, in any order, and returns the message and the
// numbers of missing parts.
//
// The octets of consecutive parts are decoded together, because an escape sequence or a
// surrogate pair may be split between them. Text has a mark for missing parts; binary data does
// not. The message is binary if any part is binary.
func (a assembler) assemble(parts []Message) (m Message, missing []int) {
	parts = slices.SortedFunc(slices.Values(parts), func(x, y Message) int { return numberOf(&x) - numberOf(&y) })
	m = parts[0]
	part, _ := PartOf(&m)
	m.CarrierID, m.Part, m.Octets, m.Notes, m.Text, m.Data = "", nil, nil, nil, "", nil
	if header, err := sms.ParseUDH(m.UDH); err == nil { // without the concatenation elements
		m.UDH = slices.DeleteFunc(header, func(e sms.Element) bool { return e.ID == sms.Concat8 || e.ID == sms.Concat16 }).Append(nil)
	}
	m.Stat, m.Coding = Concatenated, sms.GSM
	numbers := make(map[int]bool, len(parts))
	for i := range parts {
		p := &parts[i]
		numbers[numberOf(p)] = true
		m.Notes.Add(p.Notes...)
		if p.Stat == Indecipherable {
			m.Stat = Indecipherable
		}
		if p.ReceivedAt.After(m.ReceivedAt) {
			m.ReceivedAt = p.ReceivedAt
		}
		if p.Coding == sms.Binary || p.Coding == sms.UCS2 && m.Coding == sms.GSM { // the widest coding
			m.Coding = p.Coding
		}
	}
	for n := 1; n <= part.Total; n++ {
		if !numbers[n] {
			missing = append(missing, n)
		}
	}
	if m.Coding != sms.Binary {
		m.Text = a.text(parts, part.Total)
		TrimText(&m)
		return m, missing
	}
	for _, p := range parts {
		switch {
		case p.Coding == sms.Binary:
			m.Data = append(m.Data, p.Data...)
		case len(p.Octets) > 0:
			m.Data = append(m.Data, p.Octets...)
		default:
			m.Data = append(m.Data, p.Text...)
		}
	}
	return m, missing
}

func numberOf(m *Message) int {
	p, _ := PartOf(m)
	return p.Number
}

// text joins the texts of sorted parts. It decodes the octets of consecutive parts together if
// they have the same coding and languages.
func (a assembler) text(parts []Message, total int) string {
	decodedTogether := func(p, next *Message) bool {
		return numberOf(next) == numberOf(p)+1 && p.Coding == next.Coding && len(p.Octets) > 0 && len(next.Octets) > 0 &&
			LanguagesOf(p) == LanguagesOf(next)
	}
	var b strings.Builder
	number := 1
	for i := 0; i < len(parts); {
		if numberOf(&parts[i]) != number {
			b.WriteString(gap)
		}
		end := i + 1
		for end < len(parts) && decodedTogether(&parts[end-1], &parts[end]) {
			end++
		}
		b.WriteString(a.decodeTogether(parts[i:end]))
		number, i = numberOf(&parts[end-1])+1, end
	}
	if number <= total {
		b.WriteString(gap)
	}
	return b.String()
}

// decodeTogether decodes the octets of consecutive parts as one text. Without octets, it joins the
// texts of the parts, as it does for octets that are invalid in the coding; adapters refuse those.
func (a assembler) decodeTogether(parts []Message) string {
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
