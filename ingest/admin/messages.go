package admin

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// messageJSON is a message of an account in the form for the operator.
type messageJSON struct {
	ID           message.ID      `json:"id"`
	Account      relay.AccountID `json:"account"`
	Originator   string          `json:"originator"`
	Destination  string          `json:"destination"`
	Coding       message.Coding  `json:"coding"`
	Flash        bool            `json:"flash"`
	Replace      bool            `json:"replace"`
	ReportTo     string          `json:"report_to"` // secrets masked
	Origin       string          `json:"origin"`
	IP           string          `json:"ip"`
	ReceivedAt   string          `json:"received_at"`
	ScheduledFor string          `json:"scheduled_for"`
	// Code is the reported code of the message as a whole; 0: nothing yet.
	Code  message.Code `json:"code"`
	Parts []partJSON   `json:"parts"`
	// Hidden reports that the texts are left out: the caller may not read them.
	Hidden bool `json:"hidden,omitempty"`
	// Unopened reports that the record does not open, see relay.ErrUnopened: what is sealed
	// of it is left out.
	Unopened bool `json:"unopened,omitempty"`
}

type partJSON struct {
	ID          message.ID    `json:"id"`
	State       message.State `json:"state"`
	Simulated   bool          `json:"simulated"`
	Carrier     string        `json:"carrier"`
	CarrierID   string        `json:"carrier_id"`
	Reason      string        `json:"reason"`
	Report      string        `json:"report"`
	Data        string        `json:"data"`
	ScheduledAt string        `json:"scheduled_at"`
	ChangedAt   string        `json:"changed_at"`
}

func messageOf(m *message.Message) messageJSON {
	view := messageJSON{
		ID: m.ID, Account: m.Account, Originator: m.Originator, Destination: m.Destination, Coding: m.Coding,
		Unopened: m.Unopened, Flash: m.Flash, Replace: m.Replace, ReportTo: outbox.MaskTarget(m.Report.URL), Origin: m.Origin, IP: m.IP,
		ReceivedAt: formatTime(m.ReceivedAt), ScheduledFor: formatTime(m.ScheduledFor), Parts: make([]partJSON, len(m.Parts)),
	}
	view.Code, _ = m.Code()
	for n := range m.Parts {
		p := &m.Parts[n]
		view.Parts[n] = partJSON{
			ID: m.EntryID(n), State: p.State, Simulated: p.Simulated(), Carrier: p.Carrier, CarrierID: p.Ref,
			Reason: p.Reason, Report: p.Report, Data: m.Body(n), ScheduledAt: formatTime(p.ScheduledAt), ChangedAt: formatTime(p.ChangedAt),
		}
	}
	return view
}

// waiting is a message whose parts that are due say what holds them up now.
func (s *Surface) waiting(m *message.Message) messageJSON {
	view := messageOf(m)
	due := func(p message.Part) bool { return p.State == message.Pending && !p.ScheduledAt.After(s.Now()) }
	if s.Waits == nil || !slices.ContainsFunc(m.Parts, due) {
		return view
	}
	reason := s.Waits(m.Destination)
	for n := range m.Parts {
		if due(m.Parts[n]) {
			view.Parts[n].Reason = cmp.Or(reason, view.Parts[n].Reason)
		}
	}
	return view
}

// messages reads which messages of an account are meant.
func (s *selection) messages() message.Filter {
	f := message.Filter{Account: s.requiredAccount(), State: oneOf(s, "state", message.States()...), Number: s.number()}
	for _, text := range s.ids() {
		id, ok := message.ParseID(text)
		if !ok {
			s.Add("ids", "want ids of messages, got "+strconv.Quote(text))
		}
		f.IDs = append(f.IDs, id)
	}
	return f
}

// listMessages lists an account's sent messages, newest first.
func (s *Surface) listMessages(c *fiber.Ctx, sel *selection) error {
	f := sel.messages()
	limit := sel.limit()
	f.Before = message.ID(sel.before())
	if err := sel.Err(); err != nil {
		return err
	}
	nextId := message.ID(0)
	found, err := inPieces(limit, sizeOfMessage, func(n int) (found []message.Message, hasMore bool, err error) {
		f.Limit = n
		found, nextId, err = s.Messages.List(c.UserContext(), f)
		f.Before = nextId
		return found, nextId > 0, err
	})
	if err != nil {
		return err
	}
	views, cursor := make([]messageJSON, len(found)), ""
	for i := range found {
		views[i] = s.waiting(&found[i])
		views[i].hideText(c)
	}
	if nextId > 0 {
		cursor = nextId.String()
	}
	return sendPage(c, views, cursor)
}

// sizeOfMessage is about the memory of a message, in bytes.
func sizeOfMessage(m *message.Message) int {
	size := 500
	for i := range m.Parts {
		size += 300 + len(m.Parts[i].Text) + len(m.Parts[i].Data)
	}
	return size
}

// resendMessages sends parts with an unknown outcome again.
func (s *Surface) resendMessages(c *fiber.Ctx, sel *selection) error {
	f := sel.messages()
	if len(f.IDs) == 0 && sel.Problems["ids"] == nil {
		sel.Add("ids", "name the messages")
	}
	sel.refuseUnknownFields()
	if err := sel.Err(); err != nil {
		return err
	}
	httpd.NoteOf(c).Account = f.Account
	n, err := s.Messages.Resend(c.UserContext(), f, s.Now())
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"count": n})
}
