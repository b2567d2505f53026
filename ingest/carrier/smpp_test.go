package carrier

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

// deliver is a deliver_sm as an SMSC sends it.
type deliver struct {
	from, to      string
	ton           byte
	class, coding byte
	text          string
	tlvs          string // in hex
}

func (d deliver) pdu(t testing.TB) []byte {
	t.Helper()
	tlvs, err := hex.DecodeString(strings.ReplaceAll(d.tlvs, " ", ""))
	relaytest.NoError(t, err)
	if d.to == "" {
		d.to = "447800000001"
	}
	body := append([]byte{0, d.ton, 1}, d.from+"\x00\x01\x01"+d.to+"\x00"...)
	body = append(body, d.class, 0, 0, 0, 0, 0, 0, d.coding, 0, byte(len(d.text)))
	body = append(append(body, d.text...), tlvs...)
	head := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
	head = append(head, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9)
	return append(head, body...)
}

// plain is a message without anything special.
func plain(text string, coding sms.Coding) inbound.Message {
	return inbound.Message{
		CarrierID: "s-1", From: "447700900123", To: "447800000001", Text: text, Coding: coding, Reference: "one",
	}
}

func TestSMPPMessages(t *testing.T) {
	with := func(m inbound.Message, change func(*inbound.Message)) inbound.Message { change(&m); return m }
	const sender = "447700900123"
	for name, tc := range map[string]struct {
		deliver
		charset smpp.Alphabet
		want    inbound.Message
	}{
		"the default alphabet":         {deliver{from: sender, text: "a\x00\x1be"}, "", plain("a@€", sms.GSM)},
		"packed":                       {deliver{from: sender, text: "\xe8\x32\x9b\xfd\x46\x97\xd9\xec\x37"}, smpp.AlphabetPacked, plain("hellohello", sms.GSM)},
		"Latin-1 as the default":       {deliver{from: sender, text: "caf\xe9"}, smpp.AlphabetLatin1, plain("café", sms.GSM)},
		"ASCII":                        {deliver{from: sender, coding: 1, text: "a@$"}, "", plain("a@$", sms.GSM)},
		"Latin-1 beyond the alphabet":  {deliver{from: sender, coding: 3, text: "\xe7a"}, "", plain("ça", sms.UCS2)},
		"Cyrillic":                     {deliver{from: sender, coding: 6, text: "\xbf\xe0"}, "", plain("Пр", sms.UCS2)},
		"Hebrew":                       {deliver{from: sender, coding: 7, text: "\xf9"}, "", plain("ש", sms.UCS2)},
		"UCS-2 with a surrogate pair":  {deliver{from: sender, coding: 8, text: "\x00A\xd8\x34\xdd\x1e"}, "", plain("A𝄞", sms.UCS2)},
		"a flash message":              {deliver{from: sender, coding: 0x10, text: "hi"}, "", plain("hi", sms.GSM)},
		"a flash message in UCS-2":     {deliver{from: sender, coding: 0x18, text: "\x00h"}, "", plain("h", sms.UCS2)},
		"the text in message_payload":  {deliver{from: sender, tlvs: "0424 0002 6869"}, "", plain("hi", sms.GSM)},
		"a plus sign before a number":  {deliver{from: "+" + sender, to: "+447800000001", ton: 1, text: "hi"}, "", plain("hi", sms.GSM)},
		"an id that the SMSC gives":    {deliver{from: sender, text: "hi", tlvs: "001E 0003 413100"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) { m.CarrierID = "A1" })},
		"a name":                       {deliver{from: "0012", ton: 5, text: "hi"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) { m.From = "0012" })},
		"a name in Latin-1":            {deliver{from: "Caf\xe9", ton: 5, text: "hi"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) { m.From = "Café" })},
		"no sender":                    {deliver{text: "hi"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) { m.From = "" })},
		"data":                         {deliver{from: sender, coding: 4, text: "\x00\xff"}, "", with(plain("", sms.Binary), func(m *inbound.Message) { m.Data = []byte{0, 0xFF} })},
		"a coding that nobody knows":   {deliver{from: sender, coding: 0x0A, text: "x"}, "", with(plain("", sms.Binary), func(m *inbound.Message) { m.Data = []byte("x") })},
		"an acknowledgement by a user": {deliver{from: sender, class: 0x10, text: "ok"}, "", plain("ok", sms.GSM)},
		"UCS-2 and a NUL":              {deliver{from: sender, coding: 8, text: "\x00A\x00"}, "", plain("A", sms.UCS2)},
		"UCS-2 that a NUL ends":        {deliver{from: sender, coding: 8, text: "\x00A\x00\x00"}, "", plain("A\x00", sms.UCS2)},
		"UCS-2 and half a character":   {deliver{from: sender, coding: 8, text: "\x00A\x04"}, "", with(plain("A\uFFFD", sms.UCS2), func(m *inbound.Message) { m.Notes = decoders.Notes{"its UTF-16 ends with half a character"} })},
		"little-endian by its mark":    {deliver{from: sender, coding: 8, text: "\xff\xfeA\x00\x1f\x04"}, "", plain("AП", sms.UCS2)},
		"a NUL behind the message": {deliver{from: sender, text: "hi", tlvs: "00"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) {
			m.Notes = decoders.Notes{"smpp: octets behind the message that are not optional parameters, ignored: 1"}
		})},
		"a part by an 8-bit reference": {deliver{from: sender, class: 0x40, text: "\x05\x00\x03\x2a\x02\x01a\x1b"}, "", with(plain("a ", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Status, m.Octets = []byte("\x05\x00\x03\x2a\x02\x01"), inbound.Concatenated, []byte("a\x1b")
		})},
		"in Turkish": {deliver{from: sender, class: 0x40, text: "\x03\x24\x01\x01a\x1bi\x1be"}, "", with(plain("aı€", sms.GSM), func(m *inbound.Message) {
			m.UDH = []byte("\x03\x24\x01\x01")
		})},
		"a packed part in Portuguese": {deliver{from: sender, class: 0x40, text: "\x08\x00\x03\x2a\x02\x01\x25\x01\x03" + string(sms.Pack([]byte("S\x7bo"), 9))}, smpp.AlphabetPacked, with(plain("São", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Status, m.Octets = []byte("\x08\x00\x03\x2a\x02\x01\x25\x01\x03"), inbound.Concatenated, []byte("S\x7bo")
		})},
		"a language table that is not known": {deliver{from: sender, class: 0x40, text: "\x03\x25\x01\x0e\x40"}, "", with(plain("¡", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Status = []byte("\x03\x25\x01\x0e"), inbound.Indecipherable
		})},
		"a table means nothing in UCS-2": {deliver{from: sender, class: 0x40, coding: 8, text: "\x03\x25\x01\x0e\x00A"}, "", with(plain("A", sms.UCS2), func(m *inbound.Message) {
			m.UDH = []byte("\x03\x25\x01\x0e")
		})},
		"a packed part by a 16-bit reference": {deliver{from: sender, class: 0x40, text: "\x06\x08\x04\x01\x02\x02\x02\xc8\x32\x9b\xfd\x06"}, smpp.AlphabetPacked, with(plain("Hello", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Status, m.Octets = []byte("\x06\x08\x04\x01\x02\x02\x02"), inbound.Concatenated, []byte("Hello")
		})},
		"a part by SAR, of a message with one id": {deliver{from: sender, coding: 8, text: "\x00A\xd8", tlvs: "020C 0002 0102 020E 0001 03 020F 0001 02 001E 0002 3700"}, "", with(plain("A", sms.UCS2), func(m *inbound.Message) {
			m.Part, m.Status, m.Octets = &inbound.Part{Kind: inbound.ReferenceSAR, Reference: 0x0102, Total: 3, Number: 2}, inbound.Concatenated, []byte("\x00A\xd8")
			m.CarrierID = "7.2"
		})},
		"a header with an element that reaches beyond it": {deliver{from: sender, class: 0x40, text: "\x02\x00\x09hi"}, "", with(plain("hi", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Status = []byte("\x02\x00\x09"), inbound.Indecipherable
		})},
		"a header that reaches beyond the text": {deliver{from: sender, class: 0x40, text: "\x09hi"}, "", with(plain("", sms.Binary), func(m *inbound.Message) {
			m.Data, m.Status = []byte("\x09hi"), inbound.Indecipherable
		})},
	} {
		t.Run(name, func(t *testing.T) {
			e := SMPPEntry(event.SMS, "one", "1-transceiver", "s-1", tc.pdu(t))
			got, err := NewSMPP(map[string]smpp.Alphabet{"one": tc.charset}).Parse(&e)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the messages", got, []inbound.Message{tc.want}, emptyHeaderIsNone)
		})
	}
}

// emptyHeaderIsNone compares an empty user data header as equal to none.
var emptyHeaderIsNone = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".UDH" }, cmpopts.EquateEmpty())

func TestSMPPMessagesThatAreQuarantined(t *testing.T) {
	for name, tc := range map[string]struct {
		pdu  []byte
		want string
	}{
		"octets beyond the alphabet":    {deliver{from: "1", text: "caf\xe9"}.pdu(t), "smpp: short_message in the default alphabet of one: gsm7: offset 3: octet above 0x7F"},
		"no number to send it to":       {deliver{from: "1", to: "Bank", text: "a"}.pdu(t), `smpp: destination_addr "Bank" is not a number of 1 to 15 digits`},
		"a number that is too long":     {deliver{from: "1", to: "1234567890123456", text: "a"}.pdu(t), `smpp: destination_addr "1234567890123456" is not a number of 1 to 15 digits`},
		"a parameter that is cut":       {deliver{from: "1", text: "a", tlvs: "0424 0003 61"}.pdu(t), "smpp: tlv: offset 51: reaches beyond the PDU"},
		"a command that brings none":    {[]byte("\x00\x00\x00\x10\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01"), "smpp: command_id: offset 4: 0x00000004 does not carry a message"},
		"octets that are no PDU at all": {[]byte("GET / HT"), "smpp: command_length: offset 8: ends within the header"},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProcessor(&receiver{})
			p.Add(SMPP, NewSMPP(nil))
			it := intake.Item{ID: "n-s1", Seq: 1, Entry: SMPPEntry(event.SMS, "one", "1-transceiver", "s-1", tc.pdu)}
			statuses, err := intaketest.Process(t.Context(), p, it)
			want := []event.Status{{ID: "n-s1", Seq: 1, State: event.Quarantined, Reason: tc.want, Source: "smpp"}}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the statuses", statuses, want)
		})
	}
}

// FuzzSMPP: what is read of a PDU is complete, or there is an error.
func FuzzSMPP(f *testing.F) {
	f.Add(deliver{from: "447700900123", text: "hello"}.pdu(f), "gsm7")
	f.Add(deliver{from: "Bank", class: 0x40, text: "\x05\x00\x03\x2a\x02\x01a\x1b"}.pdu(f), "gsm7-packed")
	f.Add(deliver{from: "1", coding: 8, tlvs: "0424 0002 0041 020C 0002 0102 020E 0001 03 020F 0001 02"}.pdu(f), "latin1")
	f.Fuzz(func(t *testing.T, pdu []byte, charset string) {
		e := SMPPEntry(event.SMS, "one", "1-transceiver", "s-1", pdu)
		got, err := NewSMPP(map[string]smpp.Alphabet{"one": smpp.Alphabet(charset)}).Parse(&e)
		if err != nil {
			return
		}
		m := got[0]
		relaytest.Equal(t, "the reference", m.Reference, "one")
		if m.CarrierID == "" || m.To == "" || m.Coding == 0 {
			t.Fatalf("incomplete: carrier's id %q, to %q, coding %d", m.CarrierID, m.To, m.Coding)
		}
		if _, err := sms.ParseUDH(m.UDH); (err != nil) != (m.Status == inbound.Indecipherable) && m.Data == nil && m.Part == nil {
			t.Fatalf("status %d of the header %x", m.Status, m.UDH)
		}
		if p, ok := inbound.PartOf(&m); ok && (p.Number < 1 || p.Number > p.Total) {
			t.Fatalf("part %d of %d", p.Number, p.Total)
		}
	})
}
