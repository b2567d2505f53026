package carrier

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parseAndroid parses posts of apps that turn a phone into a gateway: SMS Gateway for
// Android (docs.sms-gate.app, webhooks), and forwarders with the template {from, text,
// sentStamp, receivedStamp, sim}. The phone has joined the parts. If the post lacks the
// phone's own number, the number is taken from the query: from "to" with the number of the SIM
// ("to1"), or from "to".
func parseAndroid(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	query, err := queryObject(e.Query)
	if err != nil {
		return nil, err
	}
	switch kind := o.text("event"); {
	case kind == "":
		return parseForwarded(alphabet, e, o, query)
	case kind == "sms:sent" || kind == "sms:delivered" || kind == "sms:failed":
		return nil, receiptNotice(o.child("payload").text("messageId"), kind[len("sms:"):])
	case kind != "sms:received" && kind != "sms:data-received":
		return nil, notMessage("the event " + clipValue(kind) + ", which is not a message")
	}
	p := o.child("payload")
	fields := object{
		"id": o["id"], "payload.message": p["message"], "payload.data": p["data"], "payload.phoneNumber": p.first("sender", "phoneNumber"),
		"to": ownNumber(p.text("recipient"), p.text("simNumber"), query),
	}
	f := newFieldReader(alphabet, fields)
	m := inbound.Message{CarrierID: f.required("id", maxName)}
	setSentAt(&m, "payload.receivedAt", p.text("receivedAt"), parseTime)
	f.setAddresses(&m, "payload.phoneNumber", "to")
	if o.text("event") == "sms:data-received" {
		m.Coding, m.Data = sms.Binary, f.base64("payload.data")
	} else {
		f.setText(&m, "payload.message", nil)
	}
	return f.message(m)
}

func ownNumber(recipient, sim string, query object) string {
	if recipient != "" {
		return recipient
	}
	if sim != "" && query.has("to"+sim) {
		return query.text("to" + sim)
	}
	return query.text("to")
}

// parseForwarded parses the template of forwarders, which send no id. If the post has receivedStamp,
// the hash of the post is the id, so that repetitions are recognized.
func parseForwarded(alphabet *sms.Alphabet, e *intake.Entry, o, query object) ([]inbound.Message, error) {
	sim := o.text("sim")
	if n := len(sim); n > 0 { // "sim1", or the number alone
		sim = sim[n-1:]
	}
	fields := object{"from": o["from"], "text": o["text"], "to": ownNumber(o.text("to"), sim, query)}
	f := newFieldReader(alphabet, fields)
	sum := sha256.Sum256(append([]byte(e.Query+"\x00"), e.Body...))
	var m inbound.Message
	setSentAt(&m, "sentStamp", o.text("sentStamp"), func(s string) time.Time {
		n, err := decimal.PlainInt(s)
		if err != nil || n <= 0 || n > 1<<48 {
			return time.Time{}
		}
		return time.UnixMilli(n).UTC()
	})
	if o.has("receivedStamp") {
		m.CarrierID = hex.EncodeToString(sum[:16])
	}
	f.setAddresses(&m, "from", "to")
	f.setText(&m, "text", nil)
	return f.message(m)
}

// verifyAndroid checks X-Signature: the hex of an HMAC-SHA256 with the app's signing key
// over the body and X-Timestamp, without a separator.
func verifyAndroid(r *SignedRequest, secret string) error {
	signature, timestamp := r.Header("X-Signature"), r.Header("X-Timestamp")
	if signature == "" || timestamp == "" {
		return httpd.ErrUnsigned
	}
	if !equalHex(signature, mac(sha256.New, secret, string(r.Body)+timestamp)) {
		return errSignature
	}
	return checkAge(timestamp, r.Now)
}
