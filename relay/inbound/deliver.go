package inbound

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/template"
)

// deliveries returns one delivery per parameter, one to the SIM for the action mvno, and none for an
// action that discards messages or puts them into an inbox.
func (r *CompiledRelay) deliveries(m *Message, s Settings) []outbox.Delivery {
	if r.Action.Name == MVNO { // to the operator, for the SIM that the relay names
		d := r.delivery(m, "sim:"+r.ICCID, 0)
		d.SIM = &outbox.SIM{ICCID: r.ICCID, From: m.From, To: m.To, Text: m.Text, Data: m.Data, UDH: m.UDH, Coding: int(m.Coding)}
		return []outbox.Delivery{d}
	}
	if r.parameterKind == noParameters || r.parameterKind == labels {
		return nil
	}
	v := view{Message: m, zone: s.Zone}
	ds := make([]outbox.Delivery, 0, len(r.Action.Parameters))
	for i, parameter := range r.Action.Parameters {
		d := r.delivery(m, parameter, i)
		if r.parameterKind == urls {
			d.Request = request(r.Kind, r.Action.Name, r.endpoints[i], v)
		} else {
			d.Mail = mailOf(r.Action.Name, parameter, d.ID+"@"+s.MailDomain, v)
		}
		ds = append(ds, d)
	}
	return ds
}

// delivery returns the delivery of a message to one target, without its content. index is the
// index of the parameter. The id derives from the message, the parameter and its index: a message that is
// processed twice is delivered once, and a replay after a correction of the parameter delivers
// the message to the corrected target.
func (r *CompiledRelay) delivery(m *Message, target string, index int) outbox.Delivery {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{m.ID, r.Account.String(), string(r.Kind), r.ID, r.Action.Name, target} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	binary.BigEndian.PutUint64(n[:], uint64(index))
	h.Write(n[:])
	return outbox.Delivery{
		ID: hex.EncodeToString(h.Sum(nil)[:16]), Account: r.Account, Kind: outbox.KindRelay,
		Relay: r.ID, MessageID: m.ID, State: outbox.Queued, Originator: m.From, Destination: m.To, Trace: m.Trace,
		Endpoint: outbox.EndpointID(r.Account, string(r.Kind), r.ID, target), Pace: r.Pace,
	}
}

func request(k Kind, action string, t *Template, v view) *outbox.Request {
	r := &outbox.Request{Method: "GET", URL: t.expand(v)}
	switch action {
	case HTTPPost:
		r.Method, r.ContentType, r.Body = "POST", "application/x-www-form-urlencoded", formBody(placeholders(k), v)
	case DialoguePost:
		r.Method, r.ContentType, r.Body = "POST", "application/x-www-form-urlencoded", formBody(dialogue(v), v)
	case DialogueGet:
		r.URL = addQuery(r.URL, formBody(dialogue(v), v))
	case InboundGW:
		m := gatewayMessage{
			ID: v.ID, From: v.From, To: v.To, UDH: hex.EncodeToString(v.UDH), Coding: v.Coding,
			ReceivedAt: v.ReceivedAt.UTC().Format(time.RFC3339),
		}
		text := v.Body()
		if v.Coding == sms.Binary {
			m.Data = &text
		} else {
			m.Text = &text
		}
		r.Method, r.ContentType = "POST", "application/json"
		r.Body, _ = json.Marshal(m) // strings and numbers only
	}
	return r
}

func formBody(placeholders []placeholder, v view) []byte {
	var body []byte
	for _, f := range placeholders {
		if len(body) > 0 {
			body = append(body, '&')
		}
		body = append(append(body, f.field...), '=')
		body = template.AppendEscaped(body, f.value(v))
	}
	return body
}

// mailOf returns the mail of an action to one of its addresses, with the text in the body. The
// subject has the sender and the number, or for ms_outlook the text, because Outlook's mobile
// service shows such a mail as a text message and sends an answer to X-MS-Reply-To-Mobile.
func mailOf(action, recipient, messageID string, v view) *outbox.Mail {
	mail := &outbox.Mail{To: recipient, Text: strings.ToValidUTF8(v.Body(), "\uFFFD"), MessageID: messageID}
	sender := oneLine(v.From, maxInSubject)
	if action != MSOutlook {
		mail.Subject = "SMS from " + sender + " to " + oneLine(v.To, maxInSubject)
		return mail
	}
	mail.Subject, mail.Header = oneLine(mail.Text, maxOutlookSubject), map[string]string{"Content-class": "MS-OMS-SMS"}
	if _, err := relay.ParseMSISDN(sender); err == nil {
		sender = "+" + sender // a short code or a name has no plus sign
	}
	if sender != "" {
		mail.Header["X-MS-Reply-To-Mobile"] = sender
	}
	return mail
}

// maxInSubject is the largest number of characters of a sender or a number in a header.
const maxInSubject = 64

// oneLine returns a text for a header: without line ends, control and invisible characters, and
// cut after limit characters.
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

// maxOutlookSubject is the largest number of characters of a subject that Outlook's mobile
// service shows.
const maxOutlookSubject = 40

// gatewayMessage is the body of inbound_gw's post to another gateway, in the format of
// /inbound/sms/json.
type gatewayMessage struct {
	ID         string     `json:"id"`
	From       string     `json:"from"`
	To         string     `json:"to"`
	Text       *string    `json:"text,omitempty"`
	Data       *string    `json:"data,omitempty"` // hex
	UDH        string     `json:"udh"`            // hex
	Coding     sms.Coding `json:"coding"`
	ReceivedAt string     `json:"received_at"` // RFC 3339, UTC
}

// dialogue returns the form fields of dialogue_post and dialogue_get. The names are those of the
// X-E3 interface, in which a message is either text or octets.
func dialogue(v view) []placeholder {
	// The general data coding scheme without class or compression (TS 23.038, 4).
	schemes := map[sms.Coding]int{sms.GSM: 0x00, sms.Binary: 0x04, sms.UCS2: 0x08}
	fields := []placeholder{
		{field: "X-E3-ID", value: idOf},
		{field: "X-E3-Originating-Address", value: senderOf},
		{field: "X-E3-Destination-Address", value: recipientOf},
		{field: "X-E3-Timestamp", value: func(v view) string { return v.ReceivedAt.UTC().Format("2006-01-02 15:04:05.000000") }},
		{field: "X-E3-Data-Coding-Scheme", value: func(v view) string { return fmt.Sprintf("%02x", schemes[v.Coding]) }},
		{field: "X-E3-User-Data-Header", value: udhOf},
	}
	if v.Coding == sms.Binary {
		return append(fields, placeholder{field: "X-E3-Hex-Message", value: func(v view) string { return hex.EncodeToString(v.Data) }})
	}
	return append(fields, placeholder{field: "X-E3-Message", value: bodyOf})
}

func addQuery(url string, query []byte) string {
	_, params, found := strings.Cut(url, "?")
	switch {
	case !found:
		return url + "?" + string(query)
	case params == "" || strings.HasSuffix(params, "&"):
		return url + string(query)
	}
	return url + "&" + string(query)
}
