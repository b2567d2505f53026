package carrier

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// SMPP is the name of the adapter of SMPP binds, and the source of their events.
const SMPP = "smpp"

// SMPPEntry returns the journal entry for a PDU that a bind received, with a path like those of
// HTTP carriers. The kind is event.SMS or event.Receipt. The id is the same for a PDU that the
// SMSC repeats within a session.
func SMPPEntry(kind event.Kind, carrier, bind, id string, pdu []byte) intake.Entry {
	path := messagePath
	if kind == event.Receipt {
		path = receiptPath
	}
	return intake.Entry{
		Source: SMPP, Path: path + SMPP + "/" + carrier,
		Query: url.Values{"bind": {bind}, "id": {id}}.Encode(), Body: pdu,
	}
}

// carrierAndBind returns the carrier and the bind of an SMPP entry. Entries of earlier versions
// have no bind.
func carrierAndBind(e *intake.Entry) (carrier, bind string) {
	q, _ := url.ParseQuery(e.Query)
	return e.Path[strings.LastIndexByte(e.Path, '/')+1:], q.Get("bind")
}

// NewSMPP returns the adapter that parses deliver_sm and data_sm, without an HTTP path. defaults
// are the default alphabets by carrier.
func NewSMPP(defaults map[string]smpp.Alphabet) Adapter {
	alphabet := sms.NewAlphabet()
	return Adapter{Parse: func(e *intake.Entry) ([]inbound.Message, error) {
		carrier, _ := carrierAndBind(e)
		m, err := parseSMPP(e, carrier, defaults[carrier], alphabet)
		if err != nil {
			return nil, err
		}
		return []inbound.Message{m}, nil
	}}
}

func parseSMPP(e *intake.Entry, carrier string, defaultAlphabet smpp.Alphabet, gsm *sms.Alphabet) (inbound.Message, error) {
	d, err := smpp.ParseDelivery(e.Body)
	if err != nil {
		return inbound.Message{}, err
	}
	m := inbound.Message{Reference: carrier, From: readableText(d.Source.Digits), Notes: smppNotes(d)}

	// 1. The sender, which may be missing, and the recipient.
	if number, ok := relay.NumberFrom(m.From); ok && d.Source.TON != smpp.Alphanumeric {
		m.From = number
	}
	number, ok := relay.NumberFrom(d.Destination.Digits)
	if !ok || len(number) > 15 {
		return m, relay.Errorf(relay.KindInvalid, "smpp: destination_addr %q is not a number of 1 to 15 digits", readableText(d.Destination.Digits))
	}
	m.To = number

	// 2. The user data header and the text. If the length of the header exceeds the
	// message, the whole message is data.
	if p, ok := d.Segment(); ok {
		m.Part = &inbound.Part{Kind: inbound.ReferenceSAR, Reference: p.Reference, Total: p.Total, Number: p.Number}
	}
	udh, octets, ok := d.Split()
	if ok {
		m.UDH = udh
		m.Stat = statusOf(&m)
		err = setSMPPText(&m, smpp.CodingOf(d.DataCoding), defaultAlphabet, gsm, octets)
	} else {
		m.Coding, m.Data, m.Stat = sms.Binary, octets, inbound.Indecipherable
	}
	if err != nil {
		return m, err
	}

	// 3. The SMSC's id of the message, or else the id of the PDU. The SMSC's id is the same for
	// all parts of a message, so the number of the part is appended.
	if m.CarrierID = d.MessageID(); m.CarrierID == "" {
		q, err := queryObject(e.Query)
		m.CarrierID = q.text("id")
		return m, err
	}
	if p, ok := inbound.PartOf(&m); ok {
		m.CarrierID += "." + strconv.Itoa(p.Number)
	}
	return m, nil
}

func smppNotes(d *smpp.Delivery) (notes decoders.Notes) {
	if d.Ignored > 0 {
		notes.Add(fmt.Sprintf("smpp: octets after the message were ignored, because they are not optional parameters: %d", d.Ignored))
	}
	return notes
}

// readableText converts octets that should be ASCII, but may be Latin-1, to text.
func readableText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return decodeOctets(s, "latin1")
}

// setSMPPText decodes a text in the coding of data_coding, or in the SMSC's default alphabet.
func setSMPPText(m *inbound.Message, coding smpp.Coding, defaultAlphabet smpp.Alphabet, gsm *sms.Alphabet, octets []byte) (err error) {
	switch {
	case coding == smpp.Octets:
		m.Coding, m.Data = sms.Binary, octets
		return nil
	case coding == smpp.UCS2:
		m.Coding, m.Text = sms.UCS2, decodeUTF16(m, octets)
		return nil
	case coding == smpp.Default && defaultAlphabet != smpp.AlphabetLatin1:
		if defaultAlphabet == smpp.AlphabetPacked {
			octets = sms.Unpack(octets, len(m.UDH))
		}
		m.Coding = sms.GSM
		if m.Text, err = decodeSeptets(gsm, m, octets); err != nil {
			return fmt.Errorf("smpp: short_message in the default alphabet of %s: %w", m.Reference, err)
		}
		keepOctets(m, octets)
		return nil
	case coding == smpp.Cyrillic:
		m.Text, err = charmap.ISO8859_5.NewDecoder().String(string(octets))
	case coding == smpp.Hebrew:
		m.Text, err = charmap.ISO8859_8.NewDecoder().String(string(octets))
	default: // ASCII is the lower half of Latin-1
		m.Text = decodeOctets(string(octets), "latin1")
	}
	if err != nil {
		return fmt.Errorf("smpp: short_message: %w", err)
	}
	m.Coding = codingOf(gsm, m.Text)
	return nil
}
