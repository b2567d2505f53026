package carrier

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// parseJSON parses one message as JSON, or as query parameters with the same names if
// there is no body.
func parseJSON(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := queryObject(e.Query)
	if len(e.Body) > 0 || e.Query == "" {
		o, err = jsonObject(e.Body)
	}
	if err != nil {
		return nil, err
	}
	f := newFieldReader(alphabet, o)
	f.strict = true
	m := f.readMessage()
	m.Notes.Add(unknownFields(o,
		"id", "network", "from", "to", "udh", "sar_msg_ref_num", "sar_total_segments", "sar_segment_seqnum", "sent_at", "text", "data", "coding",
		"received_at", // set by another gateway that forwards a message
	)...)
	return f.message(m)
}

func unknownFields(o object, known ...string) (notes decoders.Notes) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, name) {
			notes.Add(fmt.Sprintf("%.40s: unknown field ignored", name))
		}
	}
	return notes
}

func (f *fieldReader) readMessage() inbound.Message {
	m := inbound.Message{CarrierID: f.required("id", maxName), Network: f.optional("network", maxName)}
	f.setAddresses(&m, "from", "to")
	m.UDH = f.hex("udh", maxUDH)
	m.Part = f.sar()
	m.Stat = statusOf(&m)
	m.SentAt = f.time("sent_at")
	f.setContent(&m)
	return m
}

// ReadJSON parses a message in the format of /inbound/sms/json for a dry run: the id may
// be missing, and received_at is the assumed time of receipt. The error is
// relay.KindInvalid with the fields.
func ReadJSON(body []byte) (m inbound.Message, err error) {
	o, err := jsonObject(body)
	if errors.Is(err, params.ErrSyntax) {
		return m, relay.Invalid("body", params.ErrSyntax.Error())
	}
	if err != nil {
		return m, err
	}
	if !o.has("id") {
		o["id"] = "example"
	}
	f := newFieldReader(sms.NewAlphabet(), o)
	m = f.readMessage()
	inbound.TrimText(&m)
	m.ReceivedAt = f.time("received_at")
	return m, f.Err()
}

func (f *fieldReader) time(name string) time.Time {
	text := f.optional(name, maxName)
	t, ok := iso8601.Parse(text)
	if text != "" && !ok {
		f.Add(name, "The "+name+" must be an ISO 8601 date and time.")
	}
	return t
}

func (f *fieldReader) setContent(m *inbound.Message) {
	var coding sms.Coding // 0 if the field is missing
	if s := f.optional("coding", maxName); s != "" {
		n, err := decimal.PlainInt(s)
		if coding = sms.Coding(n); err != nil || coding != sms.GSM && coding != sms.Binary && coding != sms.UCS2 {
			f.Add("coding", "The coding must be 7, 8 or 16.")
			coding = 0
		}
	}
	switch {
	case f.has("text") && f.has("data"):
		f.Add("data", "The data and the text exclude each other.")
	case f.has("data"):
		data := f.hex("data", maxText)
		var err error
		switch coding {
		case sms.GSM:
			m.Text, err = decodeSeptets(f.alphabet, m, data)
			keepOctets(m, data)
		case sms.UCS2:
			m.Text = decodeUTF16(m, data)
		default:
			coding, m.Data = sms.Binary, data
		}
		if err != nil {
			f.Add("data", "The data is not valid in its coding: "+err.Error()+".")
		}
		m.Coding = coding
	case !f.has("text"):
		f.Add("text", "The text field is required when data is not present.")
	case coding == sms.Binary:
		f.Add("coding", "The coding 8 needs data.")
	default:
		m.Text, m.Coding = f.optional("text", maxText), coding
		if coding == 0 {
			m.Coding = codingOf(f.alphabet, m.Text)
		}
	}
}

// codingOf returns the coding of a text whose carrier does not report it: GSM if the text fits.
func codingOf(alphabet *sms.Alphabet, text string) sms.Coding {
	if alphabet.Fits(text) {
		return sms.GSM
	}
	return sms.UCS2
}
