package inbound

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/template"
)

// deliveries returns one delivery per parameter, and none for an action that
// discards messages or puts them into an inbox.
func (r *Route) deliveries(m *Message, s Settings) []outbox.Delivery {
	if r.Action.Name == MVNO {
		return []outbox.Delivery{r.toSIM(m)}
	}
	if r.takes == noParameters || r.takes == labels {
		return nil
	}
	v := view{Message: m, zone: s.Zone}
	out := make([]outbox.Delivery, 0, len(r.Action.Parameters))
	for i, parameter := range r.Action.Parameters {
		d := outbox.Delivery{
			ID: deliveryID(m, &r.Relay, i), Account: r.Account, Kind: outbox.KindRelay,
			Relay: r.ID, MessageID: m.ID, State: outbox.Queued, Originator: m.From, Destination: m.To, Trace: m.Trace,
			Endpoint: outbox.EndpointID(r.Account, string(r.Kind), r.ID, parameter), Pace: r.Pace,
		}
		if r.takes == urls {
			d.Request = request(r.Kind, r.Action.Name, r.endpoints[i], v)
		} else {
			d.Mail = mailOf(r.Action.Name, parameter, d.ID+"@"+s.MailDomain, v)
		}
		out = append(out, d)
	}
	return out
}

// toSIM delivers a message to the operator, for the SIM that the relay names.
func (r *Route) toSIM(m *Message) outbox.Delivery {
	to := "sim:" + r.ICCID
	return outbox.Delivery{
		ID: nameDelivery(m, &r.Relay, to, 0), Account: r.Account, Kind: outbox.KindRelay,
		Relay: r.ID, MessageID: m.ID, State: outbox.Queued, Originator: m.From, Destination: m.To, Trace: m.Trace,
		Endpoint: outbox.EndpointID(r.Account, string(r.Kind), r.ID, to), Pace: r.Pace,
		SIM: &outbox.SIM{
			ICCID: r.ICCID, From: m.From, To: m.To, Text: m.Text, Data: m.Data, UDH: m.UDH, Coding: int(m.Coding),
		},
	}
}

// request returns the request of an action to one of its URLs.
func request(k Kind, action string, t *Template, v view) *outbox.Request {
	switch action {
	case HTTPPost:
		return post(t, v, form(fieldsOf(k), v))
	case DialoguePost:
		return post(t, v, form(dialogue(v), v))
	case DialogueGet:
		return &outbox.Request{Method: "GET", URL: addQuery(t.expand(v), form(dialogue(v), v))}
	case InboundGW:
		return &outbox.Request{Method: "POST", URL: t.expand(v), ContentType: "application/json", Body: gatewayBody(v)}
	}
	return &outbox.Request{Method: "GET", URL: t.expand(v)}
}

// mailOf returns the mail of an action to one of its addresses.
func mailOf(action, to, messageID string, v view) *outbox.Mail {
	if action == MSOutlook {
		return outlook(to, messageID, v)
	}
	return email(to, messageID, v)
}

// deliveryID names the delivery of a message by one parameter of a relay. The
// same again gives the same id, so that a journal record that is processed
// twice sends once; a corrected parameter gives another, so that a replay sends.
func deliveryID(m *Message, r *Relay, index int) string {
	return nameDelivery(m, r, r.Action.Parameters[index], index)
}

func nameDelivery(m *Message, r *Relay, parameter string, index int) string {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{m.ID, r.Account.String(), string(r.Kind), r.ID, r.Action.Name, parameter} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	binary.BigEndian.PutUint64(n[:], uint64(index))
	h.Write(n[:])
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// post sends a form; the placeholders of the endpoint are replaced too.
func post(t *Template, v view, body []byte) *outbox.Request {
	return &outbox.Request{
		Method: "POST", URL: t.expand(v),
		ContentType: "application/x-www-form-urlencoded", Body: body,
	}
}

// formField is a field of a form and its value.
type formField struct {
	name  string
	value func(view) string
}

// fieldsOf is every placeholder of a kind as a form field.
func fieldsOf(k Kind) []formField {
	all := placeholders(k)
	out := make([]formField, len(all))
	for i, p := range all {
		out[i] = formField{p.field, p.value}
	}
	return out
}

func form(fields []formField, v view) []byte {
	var out []byte
	for _, f := range fields {
		if len(out) > 0 {
			out = append(out, '&')
		}
		out = append(append(out, f.name...), '=')
		out = template.AppendEscaped(out, f.value(v))
	}
	return out
}

// email has the sender and the number in the subject, the text in the body.
func email(to, messageID string, v view) *outbox.Mail {
	return &outbox.Mail{
		To:        to,
		Subject:   "SMS from " + oneLine(v.From, maxInSubject) + " to " + oneLine(v.To, maxInSubject),
		Text:      strings.ToValidUTF8(v.Body(), "\uFFFD"),
		MessageID: messageID,
	}
}

// maxInSubject is how many characters of a sender a subject shows.
const maxInSubject = 64

// oneLine makes a name fit for a header: line ends, control and invisible
// characters are dropped, and what is too long is cut.
func oneLine(s string, limit int) string {
	runes := make([]rune, 0, limit)
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			continue
		}
		if len(runes) == limit {
			return string(runes) + "…"
		}
		runes = append(runes, r)
	}
	return string(runes)
}
