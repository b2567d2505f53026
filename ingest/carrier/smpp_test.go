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

// deliver has the fields of a deliver_sm.
type deliver struct {
	from, to      string
	ton           byte
	class, coding byte
	text          string
	tlvs          string // in hex
}

// pdu encodes the deliver_sm.
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

// newMessage returns a message from 447700900123 to 447800000001.
func newMessage(text string, coding sms.Coding) inbound.Message {
	return inbound.Message{
		CarrierID: "s-1", From: "447700900123", To: "447800000001", Text: text, Coding: coding, Reference: "one",
	}
}

func TestSMPPMessagesAreParsed(t *testing.T) {
	changed := func(m inbound.Message, change func(*inbound.Message)) inbound.Message { change(&m); return m }
	const sender = "447700900123"
	for name, tc := range map[string]struct {
		deliver
		charset smpp.Alphabet
		want    inbound.Message
	}{
		"the default alphabet":                       {deliver{from: sender, text: "a\x00\x1be"}, "", newMessage("a@€", sms.GSM)},
		"a packed alphabet":                          {deliver{from: sender, text: "\xe8\x32\x9b\xfd\x46\x97\xd9\xec\x37"}, smpp.AlphabetPacked, newMessage("hellohello", sms.GSM)},
		"Latin-1 as the default":                     {deliver{from: sender, text: "caf\xe9"}, smpp.AlphabetLatin1, newMessage("café", sms.GSM)},
		"ASCII":                                      {deliver{from: sender, coding: 1, text: "a@$"}, "", newMessage("a@$", sms.GSM)},
		"Latin-1 outside the GSM alphabet":           {deliver{from: sender, coding: 3, text: "\xe7a"}, "", newMessage("ça", sms.UCS2)},
		"Cyrillic":                                   {deliver{from: sender, coding: 6, text: "\xbf\xe0"}, "", newMessage("Пр", sms.UCS2)},
		"Hebrew":                                     {deliver{from: sender, coding: 7, text: "\xf9"}, "", newMessage("ש", sms.UCS2)},
		"UCS-2 with a surrogate pair":                {deliver{from: sender, coding: 8, text: "\x00A\xd8\x34\xdd\x1e"}, "", newMessage("A𝄞", sms.UCS2)},
		"a flash message":                            {deliver{from: sender, coding: 0x10, text: "hi"}, "", newMessage("hi", sms.GSM)},
		"a flash message in UCS-2":                   {deliver{from: sender, coding: 0x18, text: "\x00h"}, "", newMessage("h", sms.UCS2)},
		"the text in message_payload":                {deliver{from: sender, tlvs: "0424 0002 6869"}, "", newMessage("hi", sms.GSM)},
		"a plus sign before a number":                {deliver{from: "+" + sender, to: "+447800000001", ton: 1, text: "hi"}, "", newMessage("hi", sms.GSM)},
		"an id of the SMSC":                          {deliver{from: sender, text: "hi", tlvs: "001E 0003 413100"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) { m.CarrierID = "A1" })},
		"an alphanumeric sender":                     {deliver{from: "0012", ton: 5, text: "hi"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) { m.From = "0012" })},
		"an alphanumeric sender in Latin-1":          {deliver{from: "Caf\xe9", ton: 5, text: "hi"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) { m.From = "Café" })},
		"no sender":                                  {deliver{text: "hi"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) { m.From = "" })},
		"data":                                       {deliver{from: sender, coding: 4, text: "\x00\xff"}, "", changed(newMessage("", sms.Binary), func(m *inbound.Message) { m.Data = []byte{0, 0xFF} })},
		"an unknown coding":                          {deliver{from: sender, coding: 0x0A, text: "x"}, "", changed(newMessage("", sms.Binary), func(m *inbound.Message) { m.Data = []byte("x") })},
		"a user acknowledgement":                     {deliver{from: sender, class: 0x10, text: "ok"}, "", newMessage("ok", sms.GSM)},
		"UCS-2 with a NUL octet":                     {deliver{from: sender, coding: 8, text: "\x00A\x00"}, "", newMessage("A", sms.UCS2)},
		"UCS-2 with a NUL character":                 {deliver{from: sender, coding: 8, text: "\x00A\x00\x00"}, "", newMessage("A\x00", sms.UCS2)},
		"UCS-2 with half a character":                {deliver{from: sender, coding: 8, text: "\x00A\x04"}, "", changed(newMessage("A\uFFFD", sms.UCS2), func(m *inbound.Message) { m.Notes = decoders.Notes{"the UTF-16 text ends with half a character"} })},
		"UCS-2 with a little-endian byte order mark": {deliver{from: sender, coding: 8, text: "\xff\xfeA\x00\x1f\x04"}, "", newMessage("AП", sms.UCS2)},
		"a NUL after the message": {deliver{from: sender, text: "hi", tlvs: "00"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) {
			m.Notes = decoders.Notes{"smpp: octets after the message were ignored, because they are not optional parameters: 1"}
		})},
		"a part with an 8-bit reference": {deliver{from: sender, class: 0x40, text: "\x05\x00\x03\x2a\x02\x01a\x1b"}, "", changed(newMessage("a ", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Stat, m.Octets = []byte("\x05\x00\x03\x2a\x02\x01"), inbound.Concatenated, []byte("a\x1b")
		})},
		"a Turkish table": {deliver{from: sender, class: 0x40, text: "\x03\x24\x01\x01a\x1bi\x1be"}, "", changed(newMessage("aı€", sms.GSM), func(m *inbound.Message) {
			m.UDH = []byte("\x03\x24\x01\x01")
		})},
		"a packed part with a Portuguese table": {deliver{from: sender, class: 0x40, text: "\x08\x00\x03\x2a\x02\x01\x25\x01\x03" + string(sms.Pack([]byte("S\x7bo"), 9))}, smpp.AlphabetPacked, changed(newMessage("São", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Stat, m.Octets = []byte("\x08\x00\x03\x2a\x02\x01\x25\x01\x03"), inbound.Concatenated, []byte("S\x7bo")
		})},
		"an unknown language table": {deliver{from: sender, class: 0x40, text: "\x03\x25\x01\x0e\x40"}, "", changed(newMessage("¡", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Stat = []byte("\x03\x25\x01\x0e"), inbound.Indecipherable
		})},
		"a language table with UCS-2": {deliver{from: sender, class: 0x40, coding: 8, text: "\x03\x25\x01\x0e\x00A"}, "", changed(newMessage("A", sms.UCS2), func(m *inbound.Message) {
			m.UDH = []byte("\x03\x25\x01\x0e")
		})},
		"a packed part with a 16-bit reference": {deliver{from: sender, class: 0x40, text: "\x06\x08\x04\x01\x02\x02\x02\xc8\x32\x9b\xfd\x06"}, smpp.AlphabetPacked, changed(newMessage("Hello", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Stat, m.Octets = []byte("\x06\x08\x04\x01\x02\x02\x02"), inbound.Concatenated, []byte("Hello")
		})},
		"a SAR part with the id of the message": {deliver{from: sender, coding: 8, text: "\x00A\xd8", tlvs: "020C 0002 0102 020E 0001 03 020F 0001 02 001E 0002 3700"}, "", changed(newMessage("A", sms.UCS2), func(m *inbound.Message) {
			m.Part, m.Stat, m.Octets = &inbound.Part{Kind: inbound.ReferenceSAR, Reference: 0x0102, Total: 3, Number: 2}, inbound.Concatenated, []byte("\x00A\xd8")
			m.CarrierID = "7.2"
		})},
		"a header with an element beyond its end": {deliver{from: sender, class: 0x40, text: "\x02\x00\x09hi"}, "", changed(newMessage("hi", sms.GSM), func(m *inbound.Message) {
			m.UDH, m.Stat = []byte("\x02\x00\x09"), inbound.Indecipherable
		})},
		"a header beyond the end of the text": {deliver{from: sender, class: 0x40, text: "\x09hi"}, "", changed(newMessage("", sms.Binary), func(m *inbound.Message) {
			m.Data, m.Stat = []byte("\x09hi"), inbound.Indecipherable
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

func TestInvalidSMPPMessagesAreQuarantined(t *testing.T) {
	for name, tc := range map[string]struct {
		pdu  []byte
		want string
	}{
		"octets outside the alphabet": {deliver{from: "1", text: "caf\xe9"}.pdu(t), "smpp: short_message in the default alphabet of one: gsm7: offset 3: octet above 0x7F"},
		"a name as the destination":   {deliver{from: "1", to: "Bank", text: "a"}.pdu(t), `smpp: destination_addr "Bank" is not a number of 1 to 15 digits`},
		"a destination of 16 digits":  {deliver{from: "1", to: "1234567890123456", text: "a"}.pdu(t), `smpp: destination_addr "1234567890123456" is not a number of 1 to 15 digits`},
		"a truncated parameter":       {deliver{from: "1", text: "a", tlvs: "0424 0003 61"}.pdu(t), "smpp: tlv: offset 51: reaches beyond the PDU"},
		"a command without a message": {[]byte("\x00\x00\x00\x10\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01"), "smpp: command_id: offset 4: 0x00000004 does not carry a message"},
		"octets that are not a PDU":   {[]byte("GET / HT"), "smpp: header: offset 8: is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProcessor(&receiver{})
			p.Add(SMPP, NewSMPP(nil))
			item := intake.Item{ID: "n-s1", Seq: 1, Entry: SMPPEntry(event.SMS, "one", "1-transceiver", "s-1", tc.pdu)}
			statuses, err := intaketest.Process(t.Context(), p, item)
			want := []event.Status{{ID: "n-s1", Seq: 1, State: event.Quarantined, Reason: tc.want, Source: "smpp"}}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the statuses", statuses, want)
		})
	}
}

// FuzzSMPP checks that a parsed message is complete and has a status that matches its header.
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
			t.Fatalf("carrier id = %q, to = %q, coding = %d, want all set", m.CarrierID, m.To, m.Coding)
		}
		if _, err := sms.ParseUDH(m.UDH); (err != nil) != (m.Stat == inbound.Indecipherable) && m.Data == nil && m.Part == nil {
			t.Fatalf("status for the header %x = %d", m.UDH, m.Stat)
		}
		if p, ok := inbound.PartOf(&m); ok && (p.Number < 1 || p.Number > p.Total) {
			t.Fatalf("part = %d of %d", p.Number, p.Total)
		}
	})
}
