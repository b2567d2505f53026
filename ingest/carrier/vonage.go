package carrier

import (
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parseVonage reads an inbound message of Vonage's SMS API (formerly Nexmo), as
// a query, a form or JSON, or of its Messages API. The SMS API hands over the
// parts of a message as they come, in any order.
func parseVonage(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	if status := o.text("status"); status != "" && !o.has("text") && !o.has("data") {
		return nil, receiptOf(o.first("messageId", "message_uuid"), status)
	}
	f := newForm(o.get)
	if o.has("message_uuid") {
		m := inbound.Message{CarrierID: f.required("message_uuid", maxName), SentAt: when(o.text("timestamp"))}
		f.addresses(&m, "from", "to")
		f.whole(alphabet, &m, "text", nil)
		return f.one(m)
	}
	m := inbound.Message{
		CarrierID: f.required("messageId", maxName), SentAt: when(o.text("message-timestamp")), UDH: f.hex("udh", maxUDH),
	}
	f.addresses(&m, "msisdn", "to")
	f.vonagePart(&m)
	m.Status = statusOf(&m)
	switch o.text("type") {
	case "binary":
		m.Coding, m.Data = sms.Binary, f.hex("data", maxText)
	case "unicode":
		m.Coding, m.Text = sms.UCS2, f.plain("text")
	default:
		f.whole(alphabet, &m, "text", nil)
	}
	return f.one(m)
}

// vonagePart reads which part of a message this is. The reference is the
// carrier's own and may be any text.
func (f *form) vonagePart(m *inbound.Message) {
	if f.optional("concat", maxName) != "true" {
		return
	}
	p := inbound.Part{Kind: inbound.NamedReference(f.required("concat-ref", maxName)), Total: f.integer("concat-total", 1, 255)}
	p.Number = f.integer("concat-part", 1, max(p.Total, 1))
	m.Part = &p
}
