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
	"github.com/penstock/penstock/relay/inbound"
)

// SMPP is the name of the adapter of SMPP binds, and the source of their events.
const SMPP = "smpp"

// SMPPEntry returns the journal entry of a PDU from a bind of a carrier. The id is the same
// for a PDU that the SMSC repeats within a session.
func SMPPEntry(carrier, bind, id string, pdu []byte) intake.Entry {
	return smppEntry(messagePath, carrier, bind, id, pdu)
}

// SMPPReceiptEntry is SMPPEntry for a delivery receipt.
func SMPPReceiptEntry(carrier, bind, id string, pdu []byte) intake.Entry {
	return smppEntry(receiptPath, carrier, bind, id, pdu)
}

// The prefixes of the paths of messages and receipts.
const (
	messagePath = "/inbound/sms/"
	receiptPath = "/inbound/dlr/"
)

// smppEntry returns an entry with a path like those of HTTP carriers.
func smppEntry(folder, carrier, bind, id string, pdu []byte) intake.Entry {
	return intake.Entry{
		Source: SMPP, Path: folder + SMPP + "/" + carrier,
		Query: url.Values{"bind": {bind}, "id": {id}}.Encode(), Body: pdu,
	}
}

// carrierAndBind returns the carrier of an SMPP entry and the bind that it arrived over, which
// is empty in entries of earlier versions.
func carrierAndBind(e *intake.Entry) (carrier, bind string) {
	q, _ := url.ParseQuery(e.Query)
	return e.Path[strings.LastIndexByte(e.Path, '/')+1:], q.Get("bind")
}

// NewSMPP returns the adapter that parses deliver_sm and data_sm. It has no HTTP path;
// defaults is the default alphabet of each carrier.
func NewSMPP(defaults map[string]smpp.Alphabet) Adapter {
	r := smppReader{alphabet: sms.NewAlphabet(), defaults: defaults}
	return Adapter{Parse: r.parse}
}

type smppReader struct {
	alphabet *sms.Alphabet
	defaults map[string]smpp.Alphabet
}

func (s smppReader) parse(e *intake.Entry) ([]inbound.Message, error) {
	d, err := smpp.ParseDelivery(e.Body)
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(carrierOf(e), "/")
	m := inbound.Message{Reference: name, Notes: smppNotes(d)}
	if err := smppAddresses(&m, d); err != nil {
		return nil, err
	}
	smppPart(&m, d)
	if err := s.content(&m, d, s.defaults[name]); err != nil {
		return nil, err
	}
	m.CarrierID, err = smppID(&m, d, e)
	return []inbound.Message{m}, err
}

// smppNotes says what of a PDU was ignored.
func smppNotes(d *smpp.Delivery) decoders.Notes {
	if d.Ignored == 0 {
		return nil
	}
	return decoders.Notes{fmt.Sprintf("smpp: octets behind the message that are not optional parameters, ignored: %d", d.Ignored)}
}

// smppID returns the SMSC's id of the message, or the entry's id if there is none. The
// parts of a message have the same id but are not repetitions.
func smppID(m *inbound.Message, d *smpp.Delivery, e *intake.Entry) (string, error) {
	if id := d.MessageID(); id != "" {
		if p, ok := inbound.PartOf(m); ok {
			id += "." + strconv.Itoa(p.Number)
		}
		return id, nil
	}
	q, err := parameters(e.Query)
	return q.Get("id"), err
}

// smppAddresses reads the sender, which may be missing, and the recipient.
func smppAddresses(m *inbound.Message, d *smpp.Delivery) error {
	m.From = readable(d.Source.Digits)
	if number, ok := relay.NumberFrom(m.From); ok && d.Source.TON != smpp.Alphanumeric {
		m.From = number
	}
	number, ok := relay.NumberFrom(d.Destination.Digits)
	if !ok || len(number) > 15 {
		return relay.Errorf(relay.KindInvalid, "smpp: destination_addr %q is not a number of 1 to 15 digits", readable(d.Destination.Digits))
	}
	m.To = number
	return nil
}

// readable converts octets that should be ASCII, but may be Latin-1, to text.
func readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return octetText(s, "latin1")
}

func smppPart(m *inbound.Message, d *smpp.Delivery) {
	if p, ok := d.Segment(); ok {
		m.Part = &inbound.Part{Kind: inbound.ReferenceSAR, Reference: p.Reference, Total: p.Total, Number: p.Number}
	}
}

// content reads the user data header and the text. If the length of the header exceeds
// the message, all of it is data.
func (s smppReader) content(m *inbound.Message, d *smpp.Delivery, c smpp.Alphabet) error {
	udh, text, ok := d.Split()
	if !ok {
		m.Coding, m.Data, m.Status = sms.Binary, text, inbound.Indecipherable
		return nil
	}
	m.UDH = udh
	m.Status = statusOf(m)
	return s.text(m, smpp.CodingOf(d.DataCoding), c, text)
}

func (s smppReader) text(m *inbound.Message, coding smpp.Coding, c smpp.Alphabet, octets []byte) (err error) {
	switch coding {
	case smpp.Octets:
		m.Coding, m.Data = sms.Binary, octets
		return nil
	case smpp.UCS2:
		m.Coding = sms.UCS2
		m.Text = wideText(m, octets)
	case smpp.Default:
		return s.defaultText(m, c, octets)
	case smpp.Cyrillic:
		m.Text, err = charmap.ISO8859_5.NewDecoder().String(string(octets))
	case smpp.Hebrew:
		m.Text, err = charmap.ISO8859_8.NewDecoder().String(string(octets))
	default: // ASCII is the lower half of Latin-1
		m.Text = octetText(string(octets), "latin1")
	}
	if err != nil {
		return fmt.Errorf("smpp: short_message: %w", err)
	}
	if coding != smpp.UCS2 {
		m.Coding = codingOf(s.alphabet, m.Text)
	}
	return nil
}

// defaultText decodes text in the SMSC's default alphabet.
func (s smppReader) defaultText(m *inbound.Message, c smpp.Alphabet, octets []byte) (err error) {
	switch c {
	case smpp.AlphabetLatin1:
		m.Text = octetText(string(octets), "latin1")
		m.Coding = codingOf(s.alphabet, m.Text)
		return nil
	case smpp.AlphabetPacked:
		octets = sms.Unpack(octets, len(m.UDH))
	}
	m.Coding = sms.GSM
	if m.Text, err = septetText(s.alphabet, m, octets); err != nil {
		return fmt.Errorf("smpp: short_message in the default alphabet of %s: %w", m.Reference, err)
	}
	keepOctets(m, octets)
	return nil
}
