package admin

import (
	"encoding/hex"
	"maps"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

// explainedJSON is what would become of a message.
type explainedJSON struct {
	State      string               `json:"state"`
	Reason     string               `json:"reason"`
	Outcome    string               `json:"outcome"`
	Message    routedJSON           `json:"message"`
	Joined     *joinedJSON          `json:"joined"`
	Matched    *matchedJSON         `json:"matched"`
	Considered []inbound.Considered `json:"considered"`
	Requests   []requestJSON        `json:"requests"`
}

// routedJSON is the message as the relay has it.
type routedJSON struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text"`
	Data   string `json:"data"` // hex
	UDH    string `json:"udh"`  // hex
	Coding int    `json:"coding"`
	Stat   int    `json:"stat"`
}

// joinedJSON says what a part waits for.
type joinedJSON struct {
	Part    int   `json:"part"`
	Total   int   `json:"total"`
	Missing []int `json:"missing"`
}

type matchedJSON struct {
	Kind       inbound.Kind `json:"kind"`
	ID         string       `json:"id"`
	Account    account.ID   `json:"account"`
	Why        string       `json:"why"`
	Action     string       `json:"action"`
	Parameters []string     `json:"parameters"`
	Filter     string       `json:"filter,omitempty"`
}

// requestJSON is an HTTP request, or an e-mail, as it would go out.
type requestJSON struct {
	DeliveryID string            `json:"delivery_id"`
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       string            `json:"body,omitempty"`
	Refused    string            `json:"refused,omitempty"` // why it would not be made
	Mail       *mailJSON         `json:"mail,omitempty"`
	SIM        *simJSON          `json:"sim,omitempty"`
}

type mailJSON struct {
	To        string            `json:"to"`
	Subject   string            `json:"subject"`
	Text      string            `json:"text"`
	MessageID string            `json:"message_id"`
	Headers   map[string]string `json:"headers"`
}

// simJSON is a message that the operator brings to a SIM.
type simJSON struct {
	ICCID  string `json:"iccid"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text"`
	Data   string `json:"data"` // hex
	UDH    string `json:"udh"`  // hex
	Coding int    `json:"coding"`
}

// explainRelay says which relay takes a message and why, why every other
// candidate does not, and what would go out. Nothing is saved or sent.
func (s *Surface) explainRelay(c *fiber.Ctx) error {
	sel, err := selectionOf(c)
	if err != nil {
		return err
	}
	acct := sel.account()
	if err := sel.err(); err != nil {
		return err
	}
	body, err := httpd.Body(c, 4<<20)
	if err != nil {
		return err
	}
	m, err := carrier.ReadJSON(body)
	if err != nil {
		return err
	}
	m.Account, m.Carrier = acct, "json"
	e, err := s.Explain(c.UserContext(), m)
	if err != nil {
		return err
	}
	out := explainedOf(e)
	for _, d := range e.Deliveries {
		r, err := s.requestOf(c, d)
		if err != nil {
			return err
		}
		out.Requests = append(out.Requests, r)
	}
	return c.JSON(out)
}

func explainedOf(e inbound.Explanation) explainedJSON {
	m := &e.Message
	out := explainedJSON{
		State: string(e.State), Reason: e.Reason, Outcome: e.Outcome,
		Message: routedJSON{
			From: m.From, To: m.To, Text: m.Text, Data: hex.EncodeToString(m.Data), UDH: hex.EncodeToString(m.UDH),
			Coding: int(m.Coding), Stat: int(m.Status),
		},
		Considered: append([]inbound.Considered{}, e.Considered...), Requests: []requestJSON{},
	}
	if e.Part != nil {
		out.Joined = &joinedJSON{Part: e.Part.Number, Total: e.Part.Total, Missing: e.Part.Missing}
	}
	if r := e.Matched; r != nil {
		out.Matched = &matchedJSON{
			Kind: r.Kind, ID: r.ID, Account: r.Account, Why: e.Why, Action: r.Action.Name,
			Parameters: append([]string{}, r.Action.Parameters...), Filter: r.Filter,
		}
	}
	return out
}

// requestOf is a delivery as it would go out: signed, with every header.
func (s *Surface) requestOf(c *fiber.Ctx, d outbox.Delivery) (requestJSON, error) {
	out := requestJSON{DeliveryID: d.ID}
	if d.Mail != nil {
		headers := maps.Clone(d.Mail.Header)
		if headers == nil {
			headers = map[string]string{}
		}
		out.Mail = &mailJSON{To: d.Mail.To, Subject: d.Mail.Subject, Text: d.Mail.Text, MessageID: d.Mail.MessageID, Headers: headers}
		return out, nil
	}
	if m := d.SIM; m != nil {
		out.SIM = &simJSON{m.ICCID, m.From, m.To, m.Text, hex.EncodeToString(m.Data), hex.EncodeToString(m.UDH), m.Coding}
		return out, nil
	}
	req, refused, err := s.Preview(c.UserContext(), d)
	if err != nil {
		return out, err
	}
	out.Method, out.URL, out.Headers, out.Refused = req.Method, req.URL, req.Headers, refused
	out.Body = strings.ToValidUTF8(string(req.Body), "\uFFFD")
	return out, nil
}
