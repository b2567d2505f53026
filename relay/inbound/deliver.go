package inbound

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/penstock/penstock/relay/outbox"
)

// deliveries makes one delivery for each parameter, and none for an action that
// discards.
func (r *Route) deliveries(m *Message, s Settings) []outbox.Delivery {
	info, _ := actionOf(r.Kind, r.Action.Name)
	if info.takes == nothing {
		return nil
	}
	v := view{Message: m, zone: s.Zone}
	out := make([]outbox.Delivery, 0, len(r.Action.Parameters))
	for i, parameter := range r.Action.Parameters {
		d := outbox.Delivery{
			ID: deliveryID(m, &r.Relay, i), Account: r.Account, Kind: outbox.KindRelay,
			Relay: r.ID, MessageID: m.ID, State: outbox.Queued,
		}
		switch r.Action.Name {
		case HTTPGet:
			d.Request = get(r.endpoints[i], v)
		case HTTPPost:
			d.Request = post(r.Kind, r.endpoints[i], v)
		case Email:
			d.Mail = email(parameter, d.ID+"@"+s.MailDomain, v)
		}
		out = append(out, d)
	}
	return out
}

// deliveryID names the delivery of a message by one parameter of a relay. The
// same again gives the same id, so that a journal record that is processed
// twice sends once; a corrected parameter gives another, so that a replay sends.
func deliveryID(m *Message, r *Relay, index int) string {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{m.ID, r.Account.String(), string(r.Kind), r.ID, r.Action.Name, r.Action.Parameters[index]} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	binary.BigEndian.PutUint64(n[:], uint64(index))
	h.Write(n[:])
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func get(t *Template, v view) *outbox.Request {
	return &outbox.Request{Method: "GET", URL: t.expand(v)}
}

// post sends every placeholder of the kind as a form field.
func post(k Kind, t *Template, v view) *outbox.Request {
	return &outbox.Request{
		Method: "POST", URL: t.expand(v),
		ContentType: "application/x-www-form-urlencoded", Body: form(k, v),
	}
}

func form(k Kind, v view) []byte {
	var out []byte
	for _, p := range placeholders(k) {
		if len(out) > 0 {
			out = append(out, '&')
		}
		out = append(append(out, p.field...), '=')
		out = appendEscaped(out, p.value(v))
	}
	return out
}

// email has the sender and the number in the subject, the text in the body.
func email(to, messageID string, v view) *outbox.Mail {
	return &outbox.Mail{
		To:        to,
		Subject:   "SMS from " + oneLine(v.From) + " to " + oneLine(v.To),
		Text:      strings.ToValidUTF8(v.Body(), "\uFFFD"),
		MessageID: messageID,
	}
}

// maxInSubject is how many characters of a sender a subject shows.
const maxInSubject = 64

// oneLine makes a name fit for a header: line ends, control and invisible
// characters are dropped, and what is too long is cut.
func oneLine(s string) string {
	runes := make([]rune, 0, maxInSubject)
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			continue
		}
		if len(runes) == maxInSubject {
			return string(runes) + "…"
		}
		runes = append(runes, r)
	}
	return string(runes)
}
