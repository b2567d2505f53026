package smpp

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
	"golang.org/x/text/encoding/charmap"

	"github.com/penstock/penstock/decoders/gsm"
	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
)

// Submit hands a message to the SMSC. It does not wait for the answer; how many
// are under way is for the caller to bound. See carrier.Carrier.
func (c *Client) Submit(_ context.Context, m carrier.Submission, done func(carrier.Outcome)) {
	p, err := c.submitSM(&m)
	if err != nil {
		done(carrier.Outcome{Verdict: carrier.Rejected, Reason: err.Error()})
		return
	}
	o := &owed{sequence: uint32(p.SequenceNumber), at: c.o.Now(), done: done}
	out := outgoing{raw: octets(p), owed: o}
	s := c.current.Load()
	if s == nil || !s.debts.add(o, func() { s.out <- out }) {
		done(carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier is not bound"})
	}
}

// Ready reports whether there is a bind to submit over.
func (c *Client) Ready() bool { return c.current.Load() != nil }

// submitSM makes the PDU of a message.
func (c *Client) submitSM(m *carrier.Submission) (*pdu.SubmitSM, error) {
	coding, text, err := c.coded(m)
	if err != nil {
		return nil, err
	}
	p := pdu.NewSubmitSM().(*pdu.SubmitSM)
	from, err := c.name(m.From)
	if err != nil {
		return nil, err
	}
	if err := setAddress(&p.SourceAddr, from); err != nil {
		return nil, fmt.Errorf("smpp: source_addr: %w", err)
	}
	if err := setAddress(&p.DestAddr, m.To); err != nil {
		return nil, fmt.Errorf("smpp: destination_addr: %w", err)
	}
	p.RegisteredDelivery = receiptOnEnd
	if len(m.UDH) > 0 {
		p.EsmClass = data.SM_UDH_GSM
	}
	if m.Replace {
		p.ProtocolID, p.ReplaceIfPresentFlag = replaceType1, 1
	}
	if err := setText(p, coding, append(bytes.Clone(m.UDH), text...)); err != nil {
		return nil, err
	}
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagUserMessageReference, Data: reference(m.ID)})
	return p, nil
}

const (
	// receiptOnEnd asks for a receipt, whatever the end (5.2.17).
	receiptOnEnd = 0x01
	// replaceType1 has a handset replace what it has of the same type and
	// originator (TS 23.040, 9.2.3.9); replace_if_present_flag is for messages
	// that are still at the SMSC.
	replaceType1 = 0x41
	// longestText is what fits short_message; more goes into message_payload.
	longestText = 254
)

// reference is our mark of a message, which some SMSCs give back in receipts.
func reference(id string) []byte {
	n := smpp.ReferenceOf(id)
	return []byte{byte(n >> 8), byte(n)}
}

// name is a sender in the SMSC's alphabet, which has a letter in an octet: an
// address has room for 20. Digits and the letters of ASCII are the same in all.
func (c *Client) name(from string) (string, error) {
	if c.o.Alphabet == Latin1 {
		octets, err := charmap.ISO8859_1.NewEncoder().String(from)
		if err != nil {
			return "", fmt.Errorf("smpp: the alphabet of %s, latin1, cannot write the originator", c.o.Name)
		}
		return octets, nil
	}
	octets, err := c.alphabet.Encode(from)
	if err != nil {
		return "", fmt.Errorf("smpp: source_addr: %w", err)
	}
	return string(octets), nil
}

// setAddress sets who a message is from or for: a name, a number with its
// country, or a short code (5.2.5, 5.2.6).
func setAddress(a *pdu.Address, s string) error {
	ton, npi := data.GSM_TON_INTERNATIONAL, data.GSM_NPI_ISDN
	switch {
	case strings.Trim(s, "0123456789") != "":
		ton, npi = data.GSM_TON_ALPHANUMERIC, data.GSM_NPI_UNKNOWN
	case len(s) < 7:
		ton, npi = data.GSM_TON_UNKNOWN, data.GSM_NPI_UNKNOWN
	}
	a.SetTon(ton)
	a.SetNpi(npi)
	return a.SetAddress(s)
}

func setText(p *pdu.SubmitSM, coding byte, text []byte) error {
	enc := data.NewCustomEncoding(coding, data.BINARY8BIT2)
	if len(text) <= longestText {
		return p.Message.SetMessageDataWithEncoding(text, enc)
	}
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessagePayload, Data: text})
	return p.Message.SetMessageDataWithEncoding(nil, enc)
}

// coded returns the data_coding of a message and its text as the SMSC takes it.
// The values of a flash message are those of a handset (TS 23.038, 4).
func (c *Client) coded(m *carrier.Submission) (coding byte, text []byte, err error) {
	text = m.Data
	switch m.Coding {
	case 7:
		text, err = c.defaultText(m)
	case 8:
		coding = 0x04
	case 16:
		coding = 0x08
	default:
		return 0, nil, fmt.Errorf("smpp: coding %d is not 7, 8 or 16", m.Coding)
	}
	if m.Flash {
		coding |= 0x10
	}
	return coding, text, err
}

// defaultText writes text in the SMSC's own alphabet.
func (c *Client) defaultText(m *carrier.Submission) ([]byte, error) {
	switch c.o.Alphabet {
	case Packed:
		return gsm.Pack(m.Data, len(m.UDH)), nil
	case Latin1:
		text, err := charmap.ISO8859_1.NewEncoder().String(m.Text)
		if err != nil {
			return nil, fmt.Errorf("smpp: the alphabet of %s, latin1, cannot write the text", c.o.Name)
		}
		return []byte(text), nil
	}
	return m.Data, nil
}

// outcomeOf reads an answer. The SMSC's own troubles, and a bind that may not
// send, are no fault of the message; being too fast (throttled, queue full) is none at all.
func outcomeOf(h smpp.Header, raw []byte) carrier.Outcome {
	status := data.CommandStatusType(h.Status)
	switch {
	case h.Status == statusOK && h.Command == smpp.SubmitSM.Answer():
		id, err := smpp.ParseMessageID(raw)
		if err != nil {
			return carrier.Outcome{Verdict: carrier.Accepted, Reason: "without an id that can be read: " + err.Error()}
		}
		return carrier.Outcome{Verdict: carrier.Accepted, ID: id}
	case status == data.ESME_RTHROTTLED, status == data.ESME_RMSGQFUL:
		return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: reasonOf(h)}
	case status == data.ESME_RSYSERR, status == data.ESME_RX_T_APPN, status == data.ESME_RINVBNDSTS:
		return carrier.Outcome{Verdict: carrier.Later, Reason: reasonOf(h)}
	}
	return carrier.Outcome{Verdict: carrier.Rejected, Reason: reasonOf(h)}
}

func reasonOf(h smpp.Header) string {
	status := data.CommandStatusType(h.Status)
	if h.Status == statusOK {
		return "the SMSC answered with the command " + h.Command.String()
	}
	return fmt.Sprintf("the SMSC answered with 0x%02X, %s", h.Status, status.Desc())
}
