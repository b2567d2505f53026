package carrier

import (
	"encoding/base64"
	"strings"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parseSinch reads an incoming message of Sinch's SMS API (Webhooks, mo_text,
// mo_binary and mo_media), or one that came by SMS of its Conversation API
// (MESSAGE_INBOUND). Only the second is signed.
func parseSinch(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	switch kind := o.text("type"); {
	case strings.HasPrefix(kind, "mo_"):
		return parseSinchSMS(alphabet, o, kind)
	case strings.Contains(kind, "delivery_report"):
		return nil, receiptOf(o.first("batch_id", "id"), o.first("status", "type"))
	case o.has("message"):
		return parseSinchConversation(alphabet, o.object("message"))
	case o.has("message_delivery_report"):
		r := o.object("message_delivery_report")
		return nil, receiptOf(r.text("message_id"), r.text("status"))
	case o.has("app_id"):
		return nil, notMessage("an event of the Conversation API that is no message")
	}
	f := newForm(o.get)
	f.Add("type", "The type must be mo_text, mo_binary or mo_media.")
	return nil, f.Err()
}

func parseSinchSMS(alphabet *sms.Alphabet, o object, kind string) ([]inbound.Message, error) {
	f := newForm(o.get)
	m := inbound.Message{
		CarrierID: f.required("id", maxName), Network: f.optional("operator_id", maxName), SentAt: when(o.first("sent_at", "received_at")),
	}
	f.addresses(&m, "from", "to")
	switch kind {
	case "mo_binary":
		m.UDH, m.Coding, m.Data = f.hex("udh", maxUDH), sms.Binary, f.base64("body")
		m.Status = statusOf(&m)
	case "mo_media":
		f.Get = textsOf(o.object("body"), "message", "subject").get
		f.whole(alphabet, &m, "message", urlsOf(o.object("body").list("media")))
	default:
		f.whole(alphabet, &m, "body", nil)
	}
	return f.one(m)
}

// textsOf is an object whose first name has the first text there is, "" if
// there is none.
func textsOf(o object, names ...string) object { return object{names[0]: o.first(names...)} }

func urlsOf(all []object) (urls []string) {
	for _, one := range all {
		if u := one.text("url"); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// parseSinchConversation reads the message of a MESSAGE_INBOUND. Its sender_id
// is the number that it was sent to.
func parseSinchConversation(alphabet *sms.Alphabet, o object) ([]inbound.Message, error) {
	from := o.object("channel_identity")
	if channel := from.text("channel"); channel != "SMS" && channel != "MMS" {
		return nil, notMessage("a message by the channel " + clipValue(strings.ToValidUTF8(channel, "\uFFFD")) + ", not by SMS")
	}
	contact := o.object("contact_message")
	f := newForm(object{
		"id": o["id"], "identity": from["identity"], "sender_id": o["sender_id"],
		"text": contact.object("text_message").text("text"),
	}.get)
	m := inbound.Message{CarrierID: f.required("id", maxName), SentAt: when(o.text("accept_time"))}
	f.addresses(&m, "identity", "sender_id")
	f.whole(alphabet, &m, "text", urlsOf([]object{contact.object("media_message")}))
	return f.one(m)
}

// base64 returns octets written in base64.
func (f *form) base64(name string) []byte {
	b, err := base64.StdEncoding.DecodeString(f.optional(name, 2*maxText))
	if err != nil || len(b) > maxText {
		f.Add(name, "The "+name+" must be base64.")
		return nil
	}
	return b
}
