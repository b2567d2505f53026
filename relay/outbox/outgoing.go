package outbox

import (
	"context"
	"encoding/hex"
	"maps"
	"strings"
)

// Outgoing is the API's description of the request, mail or message that would be sent for a
// delivery.
type Outgoing struct {
	DeliveryID string            `json:"delivery_id"`
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`    // valid UTF-8
	Refused    string            `json:"refused,omitempty"` // reason why the request would not be made
	Mail       *OutgoingMail     `json:"mail,omitempty"`
	SIM        *OutgoingSIM      `json:"sim,omitempty"`
	SMS        *SMS              `json:"sms,omitempty"`
}

// OutgoingMail is an e-mail with its additional headers.
type OutgoingMail struct {
	To        string            `json:"to"`
	Subject   string            `json:"subject"`
	Text      string            `json:"text"`
	MessageID string            `json:"message_id"`
	Headers   map[string]string `json:"headers"`
}

// OutgoingSIM is a message that the operator delivers to a SIM.
type OutgoingSIM struct {
	ICCID string `json:"iccid"`
	Content
}

// Content has the addresses and the content of an inbound message as the API shows them.
type Content struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text"`
	Data   string `json:"data"` // hex
	UDH    string `json:"udh"`  // hex
	Coding int    `json:"coding"`
}

// OutgoingOf returns the Outgoing of a delivery. refused is the reason why its request would not be
// made; "" if it would be.
func OutgoingOf(d *Delivery, refused string) Outgoing {
	o := Outgoing{DeliveryID: d.ID, SMS: d.SMS}
	switch {
	case d.Mail != nil:
		headers := maps.Clone(d.Mail.Header)
		if headers == nil {
			headers = map[string]string{}
		}
		o.Mail = &OutgoingMail{To: d.Mail.To, Subject: d.Mail.Subject, Text: d.Mail.Text, MessageID: d.Mail.MessageID, Headers: headers}
	case d.SIM != nil:
		m := d.SIM
		o.SIM = &OutgoingSIM{m.ICCID, Content{m.From, m.To, m.Text, hex.EncodeToString(m.Data), hex.EncodeToString(m.UDH), m.Coding}}
	case d.Request != nil:
		o.Method, o.URL, o.Headers, o.Refused = d.Request.Method, d.Request.URL, d.Request.Headers, refused
		o.Body = strings.ToValidUTF8(string(d.Request.Body), "\uFFFD")
	}
	return o
}

// Previewer returns the request of a delivery as it would be sent now, signed and with all headers.
// refused is the reason why it would not be made; "" if it would be.
type Previewer func(ctx context.Context, d Delivery) (req Request, refused string, err error)

// Preview returns the Outgoing of deliveries that are not saved. A nil Previewer leaves requests
// unchanged.
func Preview(ctx context.Context, ds []Delivery, preview Previewer) ([]Outgoing, error) {
	list := make([]Outgoing, len(ds))
	for i, d := range ds {
		refused := ""
		if d.Request != nil && preview != nil {
			req, reason, err := preview(ctx, d)
			if err != nil {
				return nil, err
			}
			d.Request, refused = &req, reason
		}
		list[i] = OutgoingOf(&d, refused)
	}
	return list, nil
}
