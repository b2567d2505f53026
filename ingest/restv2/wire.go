package restv2

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// relayJSON is an SMS relay object. It has the number or prefix twice, because the specification
// has it on the object in the list of fields, and inside action in the samples.
type relayJSON struct {
	ID        string     `json:"id"`
	Prefix    string     `json:"prefix,omitempty"`
	Number    string     `json:"number,omitempty"`
	Action    actionJSON `json:"action"`
	Filter    string     `json:"filter,omitempty"` // an extension; absent if there is none
	UpdatedAt momentJSON `json:"updated_at"`
}

type actionJSON struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Parameters  []string `json:"parameters"`
	Prefix      string   `json:"prefix,omitempty"`
	Number      string   `json:"number,omitempty"`
}

// momentJSON is a time in the format of updated_at in the specification.
type momentJSON struct {
	Date         string `json:"date"`
	TimezoneType int    `json:"timezone_type"` // 3 means a zone with a name
	Timezone     string `json:"timezone"`
}

const momentFormat = "2006-01-02 15:04:05.000000"

// relayOf returns a relay for an answer. It masks URLs if the sender of the request may not see
// secrets.
func relayOf(c *fiber.Ctx, r inbound.Relay) relayJSON {
	view := relayJSON{
		ID: r.ID, Filter: r.Filter,
		Action: actionJSON{
			Name: r.Action.Name, Description: inbound.Describe(r.Kind, r.Action.Name),
			Parameters: append([]string{}, r.Action.Parameters...),
		},
		UpdatedAt: momentJSON{Date: r.UpdatedAt.UTC().Format(momentFormat), TimezoneType: 3, Timezone: "UTC"},
	}
	if r.Kind == inbound.Geographic {
		view.Prefix, view.Action.Prefix = r.Number, r.Number
	} else {
		view.Number, view.Action.Number = r.Number, r.Number
	}
	if !httpd.SeesSecrets(c) {
		view.Action.Parameters = httpd.Each(view.Action.Parameters, outbox.MaskPath)
	}
	return view
}

type trialJSON struct {
	State    string            `json:"state"`
	Reason   string            `json:"reason"`
	Outcome  string            `json:"outcome"`
	Sent     bool              `json:"sent"`
	Requests []outbox.Outgoing `json:"requests"`
}

// inboxMessageJSON is a message of an inbox. Its fields are named like those of pending
// messages, or else like the placeholders of relays for virtual numbers.
type inboxMessageJSON struct {
	ID          string   `json:"id"`
	Source      string   `json:"source"`
	Destination string   `json:"destination"`
	Received    string   `json:"received"` // UTC
	Sent        *string  `json:"sent"`     // UTC; null if the carrier does not report it
	Data        string   `json:"data"`     // text, or hex if code is 8
	Code        int      `json:"code"`     // 7 GSM, 8 binary, 16 Unicode
	Stat        int      `json:"stat"`
	UDH         string   `json:"udh"`
	Network     string   `json:"network"`
	Labels      []string `json:"labels"`
}

func inboxMessageOf(k inbound.InboxMessage) inboxMessageJSON {
	m := &k.Message
	return inboxMessageJSON{
		ID: m.ID, Source: m.From, Destination: m.To, Received: formatTime(m.ReceivedAt), Sent: httpd.TimeOrNull(m.SentAt, time.DateTime),
		Data: m.Body(), Code: int(m.Coding), Stat: int(m.Stat), UDH: hex.EncodeToString(m.UDH),
		Network: m.Network, Labels: append([]string{}, k.Labels...),
	}
}

func answerData(c *fiber.Ctx, v any) error { return c.JSON(fiber.Map{"data": v}) }

// pendingJSON is a pending message; times are UTC.
type pendingJSON struct {
	ID                        message.ID `json:"id"`
	Source                    string     `json:"source"`
	Destination               string     `json:"destination"`
	Received                  string     `json:"received"`
	ScheduledDelivery         string     `json:"scheduled_delivery"`
	OriginalScheduledDelivery string     `json:"original_scheduled_delivery"`
	Data                      string     `json:"data"`
}

func pendingJSONOf(e message.View) pendingJSON {
	return pendingJSON{
		ID: e.ID, Source: e.Source, Destination: e.Destination, Received: formatTime(e.Received),
		ScheduledDelivery: formatTime(e.Scheduled), OriginalScheduledDelivery: formatTime(e.OriginalScheduled), Data: e.Data,
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

type previewJSON struct {
	MessageParts    int      `json:"message_parts"`
	CreditCost      int64    `json:"credit_cost"`
	AvailableCredit int64    `json:"available_credit"`
	MessageMeta     metaJSON `json:"message_meta"`
}

type metaJSON struct {
	ForcedRoute *string         `json:"forced_route"` // always null, because the prefix determines the route
	Originator  string          `json:"originator"`
	DLRType     string          `json:"dlr_type"`
	DLRData     string          `json:"dlr_data"`
	IP          string          `json:"ip"`
	Flash       bool            `json:"flash"`
	ReplaceSMS  bool            `json:"replace_sms"`
	AccountID   relay.AccountID `json:"account_id"`
	DeleteBody  bool            `json:"delete_body"` // always false, because a body is deleted together with its message
	SendTime    *string         `json:"send_time"`
}

func previewOf(o message.Order, v message.Preview) previewJSON {
	return previewJSON{
		MessageParts: v.Parts, CreditCost: v.Cost, AvailableCredit: v.Credit,
		MessageMeta: metaJSON{
			Originator: o.Originator, DLRType: o.Report.Type(), DLRData: o.Report.URL, IP: o.IP,
			Flash: o.Flash, ReplaceSMS: o.Replace, AccountID: o.Account, SendTime: httpd.TimeOrNull(o.SendAt, time.DateTime),
		},
	}
}

type invalidJSON struct {
	Message string `json:"message"`
	Errors  string `json:"errors"` // the failed parameters
}

// sendProblems answers with the names of the failed parameters in errors and the reasons in message.
func sendProblems(c *fiber.Ctx, err error) error {
	fields := relay.FieldsOf(err)
	names := slices.Sorted(maps.Keys(fields))
	var reasons []string
	for _, name := range names {
		reasons = append(reasons, fields[name]...)
	}
	return c.Status(fiber.StatusUnprocessableEntity).JSON(invalidJSON{
		Message: strings.Join(reasons, " "), Errors: strings.Join(names, ", "),
	})
}
