package carrier

import (
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parsePlivo reads the parameters of Plivo's message_url ("Handling incoming
// SMS/MMS"), a form, a query or JSON. Plivo has joined the parts; the addresses
// of media follow the text.
func parsePlivo(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	if status := o.text("Status"); status != "" && !o.has("Text") && !o.has("Body") {
		return nil, receiptOf(o.text("MessageUUID"), status)
	}
	f := newForm(o.get)
	m := inbound.Message{CarrierID: f.required("MessageUUID", maxName)}
	f.addresses(&m, "From", "To")
	text := "Text"
	if !o.has(text) && o.has("Body") {
		text = "Body" // of an MMS
	}
	f.whole(alphabet, &m, text, media(o, "MediaCount", "Media", 1))
	return f.one(m)
}
