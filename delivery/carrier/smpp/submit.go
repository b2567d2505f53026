package smpp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
	"golang.org/x/text/encoding/charmap"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/delivery/carrier"
)

// Submit submits a message to the SMSC. It does not wait for the response; the
// caller bounds the number in flight. See carrier.Carrier.
func (c *Client) Submit(_ context.Context, m carrier.Submission, done func(carrier.Result)) {
	p, err := c.submitSM(&m)
	if err != nil {
		done(carrier.Result{Verdict: carrier.Rejected, NotSubmitted: true, Reason: err.Error()})
		return
	}
	request := &pendingRequest{raw: marshal(p), sequence: uint32(p.SequenceNumber), submittedAt: c.o.Now(), done: done}
	s := c.session.Load()
	switch {
	case s == nil:
		done(unsentResult("the carrier is not bound"))
	case !s.outstanding.add(request):
		done(unsentResult("the bind is ending, or the SMSC does not read"))
	}
}

// Ready reports whether there is a session that accepts submissions.
func (c *Client) Ready() bool {
	s := c.session.Load()
	return s != nil && s.outstanding.hasRoom()
}

func (c *Client) submitSM(m *carrier.Submission) (*pdu.SubmitSM, error) {
	coding, text, err := c.encodeText(m)
	if err != nil {
		return nil, err
	}
	p := pdu.NewSubmitSM().(*pdu.SubmitSM)
	// An address has one character per octet: ASCII (SMPP 3.4, 2.7.1), and Latin-1 for other
	// characters. The carrier's alphabet applies to texts only.
	originator, err := latin1(m.From)
	if err != nil {
		return nil, errors.New("smpp: source_addr: the originator has characters beyond Latin-1")
	}
	if err := setAddress(&p.SourceAddr, originator); err != nil {
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
	message := append(bytes.Clone(m.UDH), text...)
	if len(message) > maxShortMessage {
		p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagMessagePayload, Data: message})
		message = nil
	}
	if err := p.Message.SetMessageDataWithEncoding(message, data.NewCustomEncoding(coding, data.BINARY8BIT2)); err != nil {
		return nil, err
	}
	// Some SMSCs return the user_message_reference in receipts.
	reference := binary.BigEndian.AppendUint16(nil, smpp.ReferenceOf(m.ID))
	p.RegisterOptionalParam(pdu.Field{Tag: pdu.TagUserMessageReference, Data: reference})
	return p, nil
}

const (
	// receiptOnEnd requests a receipt for every final state (5.2.17).
	receiptOnEnd = 0x01
	// replaceType1 makes a handset replace the message of the same type and
	// originator (TS 23.040, 9.2.3.9); replace_if_present_flag covers messages
	// that are still at the SMSC.
	replaceType1 = 0x41
	// maxShortMessage is the size of short_message in octets; longer texts use
	// message_payload.
	maxShortMessage = 254
	// maxAddress is the size of source_addr in octets.
	maxAddress = 20
)

func latin1(text string) (string, error) { return charmap.ISO8859_1.NewEncoder().String(text) }

// AcceptsOriginator reports whether source_addr can represent an originator.
func (c *Client) AcceptsOriginator(originator string) bool {
	octets, err := latin1(originator)
	return err == nil && len(octets) <= maxAddress
}

// setAddress sets an address: alphanumeric, international, or a short code
// (5.2.5, 5.2.6).
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

// encodeText returns the data_coding and the encoded text of a message: text of the GSM alphabet in
// the SMSC's default alphabet, or in UCS-2 if that cannot represent the text. Messages are split
// accordingly; a text that was split for another carrier is sent if it fits. For a flash message
// the data_coding includes the message class (TS 23.038, 4).
func (c *Client) encodeText(m *carrier.Submission) (coding byte, text []byte, err error) {
	text = m.Data
	switch {
	case m.Coding == 7 && c.o.Alphabet == smpp.AlphabetPacked:
		text = sms.Pack(m.Data, len(m.UDH))
	case m.Coding == 7 && c.o.Alphabet == smpp.AlphabetLatin1:
		if octets, err := latin1(m.Text); err == nil {
			text = []byte(octets)
		} else if coding, text = 0x08, sms.EncodeUCS2(m.Text); len(m.UDH)+len(text) > sms.MaxOctets {
			return 0, nil, fmt.Errorf("smpp: the alphabet latin1 of %s cannot represent the text, and in UCS-2 the text does not fit in a message", c.o.Carrier)
		}
	case m.Coding == 7:
	case m.Coding == 8:
		coding = 0x04
	case m.Coding == 16:
		coding = 0x08
	default:
		return 0, nil, fmt.Errorf("smpp: coding %d is not 7, 8 or 16", m.Coding)
	}
	if m.Flash {
		coding |= 0x10
	}
	return coding, text, nil
}

// FitsSevenBit reports whether the SMSC's default alphabet can represent a text of the
// GSM alphabet; other texts are sent as UCS-2.
func (c *Client) FitsSevenBit(text string) bool {
	if c.o.Alphabet != smpp.AlphabetLatin1 {
		return true
	}
	_, err := latin1(text)
	return err == nil
}

// resultOf converts a response. A throttled response or a full message queue pauses the queue;
// errors of the SMSC and an invalid bind status are retried.
func resultOf(h smpp.Header, raw []byte) carrier.Result {
	status := data.CommandStatusType(h.Status)
	switch {
	case h.Status == statusOK && h.Command == smpp.SubmitSM.Answer():
		id, err := smpp.ParseMessageID(raw)
		if err != nil {
			return carrier.Result{Verdict: carrier.Accepted, Reason: "the response has no readable id: " + err.Error()}
		}
		return carrier.Result{Verdict: carrier.Accepted, ID: id}
	case status == data.ESME_RTHROTTLED, status == data.ESME_RMSGQFUL:
		return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: reasonOf(h)}
	case status == data.ESME_RSYSERR, status == data.ESME_RX_T_APPN, status == data.ESME_RINVBNDSTS:
		return carrier.Result{Verdict: carrier.RetryLater, Reason: reasonOf(h)}
	}
	return carrier.Result{Verdict: carrier.Rejected, Reason: reasonOf(h)}
}

func reasonOf(h smpp.Header) string {
	status := data.CommandStatusType(h.Status)
	if h.Status == statusOK {
		return "the SMSC answered with the command " + h.Command.String()
	}
	return fmt.Sprintf("the SMSC answered with 0x%02X, %s", h.Status, status.Desc())
}
