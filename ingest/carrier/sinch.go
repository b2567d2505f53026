package carrier

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"strings"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/inbound"
)

// parseSinch parses an incoming message of Sinch's SMS API (Webhooks, mo_text, mo_binary
// and mo_media), or an SMS of its Conversation API (MESSAGE_INBOUND). Only the latter is
// signed.
func parseSinch(f *fieldReader) ([]inbound.Message, error) {
	switch kind := f.text("type"); {
	case strings.HasPrefix(kind, "mo_"):
		return parseSinchSMS(f, kind)
	case strings.Contains(kind, "delivery_report"):
		return nil, receiptNotice(f.first("batch_id", "id"), f.first("status", "type"))
	case f.has("message"):
		return parseSinchConversation(f.alphabet, f.child("message"))
	case f.has("message_delivery_report"):
		r := f.child("message_delivery_report")
		return nil, receiptNotice(r.text("message_id"), r.text("status"))
	case f.has("app_id"):
		return nil, notMessage("an event of the Conversation API that is not a message")
	}
	f.Add("type", "The type must be mo_text, mo_binary or mo_media.")
	return nil, f.Err()
}

func parseSinchSMS(f *fieldReader, kind string) ([]inbound.Message, error) {
	m := inbound.Message{CarrierID: f.required("id", maxName), Network: f.optional("operator_id", maxName)}
	setSentAt(&m, "sent_at", f.first("sent_at", "received_at"), parseTime)
	f.setAddresses(&m, "from", "to")
	switch kind {
	case "mo_binary":
		m.UDH, m.Coding, m.Data = f.hex("udh", maxUDH), sms.Binary, f.base64("body")
		m.Stat = statusOf(&m)
	case "mo_media":
		f.object["message"] = f.child("body").first("message", "subject")
		f.setText(&m, "message", urlsOf(f.child("body").list("media")...))
	default:
		f.setText(&m, "body", nil)
	}
	return f.message(m)
}

func urlsOf(media ...object) (urls []string) {
	for _, o := range media {
		if u := o.text("url"); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// parseSinchConversation parses the message of a MESSAGE_INBOUND. Its sender_id is the
// number that received it.
func parseSinchConversation(alphabet *sms.Alphabet, o object) ([]inbound.Message, error) {
	identity := o.child("channel_identity")
	if channel := identity.text("channel"); channel != "SMS" && channel != "MMS" {
		return nil, notMessage("a message by the channel " + clipValue(strings.ToValidUTF8(channel, "\uFFFD")) + ", not by SMS")
	}
	contact := o.child("contact_message")
	f := newFieldReader(alphabet, object{
		"id": o["id"], "identity": identity["identity"], "sender_id": o["sender_id"],
		"text": contact.child("text_message").text("text"),
	})
	m := inbound.Message{CarrierID: f.required("id", maxName)}
	setSentAt(&m, "accept_time", o.text("accept_time"), parseTime)
	f.setAddresses(&m, "identity", "sender_id")
	f.setText(&m, "text", urlsOf(contact.child("media_message")))
	return f.message(m)
}

func (f *fieldReader) base64(name string) []byte {
	b, err := base64.StdEncoding.DecodeString(f.optional(name, 2*maxText))
	if err != nil || len(b) > maxText {
		f.Add(name, "The "+name+" must be base64.")
		return nil
	}
	return b
}

// verifySinch checks X-Sinch-Webhook-Signature of the Conversation API: the base64 of an
// HMAC with the webhook's secret over the body, a nonce and the time, separated by dots.
// The SMS API does not sign; it uses Basic authentication.
func verifySinch(r *SignedRequest, secret string) error {
	const name = "X-Sinch-Webhook-Signature"
	signature, nonce, timestamp := r.Header(name), r.Header(name+"-Nonce"), r.Header(name+"-Timestamp")
	if signature == "" || nonce == "" || timestamp == "" {
		return httpd.ErrUnsigned
	}
	h := map[string]func() hash.Hash{"": sha256.New, "HmacSHA256": sha256.New, "HmacSHA512": sha512.New}[r.Header(name+"-Algorithm")]
	if h == nil || !equalBase64(signature, mac(h, secret, string(r.Body)+"."+nonce+"."+timestamp)) {
		return errSignature
	}
	return checkAge(timestamp, r.Now)
}
