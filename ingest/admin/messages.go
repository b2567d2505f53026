package admin

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// The directions of messages.
const (
	received = "in"
	sent     = "out"
)

// messageJSON is a message of an account in the form for the operator.
type messageJSON struct {
	Direction    string          `json:"direction"`
	ID           message.ID      `json:"id"` // 0 if it was received
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
	// Event is what was received; nil if the message was sent.
	Event *eventJSON `json:"event,omitempty"`
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

// messageOf is a message whose parts that are due say what holds them up now.
func (s *Surface) messageOf(m *message.Message) messageJSON {
	view := messageJSON{
		Direction: sent, ID: m.ID, Account: m.Account, Originator: m.Originator, Destination: m.Destination, Coding: m.Coding,
		Unopened: m.Unopened, Flash: m.Flash, Replace: m.Replace, ReportTo: outbox.MaskTarget(m.Report.URL), Origin: m.Origin, IP: m.IP,
		ReceivedAt: formatTime(m.ReceivedAt), ScheduledFor: formatTime(m.ScheduledFor), Parts: make([]partJSON, len(m.Parts)),
	}
	view.Code, _ = m.Code()
	for n := range m.Parts {
		p := &m.Parts[n]
		view.Parts[n] = partJSON{
			ID: m.PartID(n), State: p.State, Simulated: p.Simulated(), Carrier: p.Carrier, CarrierID: p.CarrierID,
			Reason: p.Reason, Report: p.Report, Data: m.Body(n), ScheduledAt: formatTime(p.ScheduledAt), ChangedAt: formatTime(p.ChangedAt),
		}
	}
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

// receivedMessage is the view of an event with messages. Its numbers are those of the first
// message that the outcome names: "from 447700900123 to 4490".
func receivedMessage(e *eventJSON) messageJSON {
	view := messageJSON{Direction: received, Account: e.Account, ReceivedAt: e.ReceivedAt, Parts: []partJSON{}, Event: e}
	_, numbers, _ := strings.Cut(e.Outcome, "from ")
	from, to, ok := strings.Cut(numbers, " to ")
	if ok {
		to, _, _ = strings.Cut(to, "; ")
		to, _, _ = strings.Cut(to, " over bind ")
		view.Originator, view.Destination = from, to
	}
	return view
}

// messages reads which sent messages are meant.
func (s *selection) messages() message.Filter {
	f := message.Filter{State: oneOf(s, "state", message.States()...), Number: s.number()}
	for _, text := range s.ids() {
		id, ok := message.ParseID(text)
		if !ok {
			s.Add("ids", "want ids of messages, got "+strconv.Quote(text))
		}
		f.IDs = append(f.IDs, id)
	}
	return f
}

// listMessages lists sent and received messages of one or all accounts, newest first.
func (s *Surface) listMessages(c *fiber.Ctx, sel *selection) error {
	f := sel.messages()
	f.Account = sel.account()
	list := messageList{limit: sel.limit(), end: 1}
	direction := oneOf(sel, "direction", received, sent)
	var eventCursor string
	place(sel, &eventCursor, &f.Before)
	at, ok := parsePositions(eventCursor, s.Node)
	if !ok {
		sel.Add("cursor", notACursor)
	}
	if direction == received && f.State != "" {
		sel.Add("state", "Only sent messages have a state.")
	}
	if err := sel.Err(); err != nil {
		return err
	}
	// 1. The sent messages.
	var err error
	if direction != received {
		if err = s.findSent(c, &list, f); err != nil {
			return err
		}
	}
	// 2. The received ones, from the journals.
	if list.events = (&eventList{at: at}); direction != sent && f.State == "" {
		intakes := ofKind(s.Intakes, event.SMS)
		query := url.Values{"kind": {string(event.SMS)}}
		if f.Number != "" {
			query.Set("number", f.Number)
		}
		list.events, err = s.findEvents(c, intakes, event.Filter{Account: f.Account, Number: f.Number}, at, list.limit, query)
		if err != nil {
			return err
		}
	}
	// 3. The page, merged from these.
	defer list.events.sources.stop()
	views, err := list.merge(hidesTexts(c))
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": views, "meta": list.events.meta})
}

// findSent reads a page of sent messages.
func (s *Surface) findSent(c *fiber.Ctx, list *messageList, f message.Filter) error {
	accounts := []relay.AccountID{f.Account}
	if f.Account == 0 {
		stored, err := s.Accounts.Accounts(c.UserContext())
		if err != nil {
			return err
		}
		accounts = httpd.Each(stored, func(a account.Account) relay.AccountID { return a.ID })
	}
	list.end = cmp.Or(f.Before, math.MaxInt64)
	messages, err := inPieces(list.limit, sizeOfMessage, func(n int) (found []message.Message, hasMore bool, err error) {
		f.Limit = n
		found, f.Before, err = s.Messages.ListNewest(c.UserContext(), accounts, f)
		list.hasMore = f.Before > 0
		return found, list.hasMore, err
	})
	for i := range messages {
		view := s.messageOf(&messages[i])
		view.hideText(c)
		list.sent = append(list.sent, view)
	}
	return err
}

// messageList is a list of sent and received messages.
type messageList struct {
	limit   int
	sent    []messageJSON // that are not in the page yet
	hasMore bool          // there are sent messages behind these
	end     message.ID    // of which sent messages the next page begins: those with a lower id
	events  *eventList
}

// merge returns a page, the newest first, and writes its meta.
func (l *messageList) merge(hidden bool) ([]messageJSON, error) {
	page := []messageJSON{}
	for len(page) < l.limit {
		src := l.events.newest()
		nextAt := l.events.meta.SearchedTo
		if src != nil {
			nextAt = src.head.ReceivedAt
		}
		switch {
		case len(l.sent) > 0 && (nextAt == "" || !isBefore(l.sent[0].ReceivedAt, nextAt)):
			page, l.end = append(page, l.sent[0]), l.sent[0].ID
			l.sent = l.sent[1:]
			continue
		case src != nil && (len(l.sent) > 0 || !l.hasMore):
			e := *src.head
			l.events.pass(src)
			e.hideText(hidden)
			page = append(page, receivedMessage(&e))
			continue
		}
		break
	}
	// The next page.
	if err := l.events.end(); err != nil {
		return nil, err
	}
	hasMore := l.events.meta.Next != "" || len(l.sent) > 0 || l.hasMore
	if len(l.sent) == 0 && !l.hasMore {
		l.end = 1
	}
	l.events.meta.Next = ""
	if hasMore {
		l.events.meta.Next = placeCursor("%d %s", l.end, l.events.at)
	}
	return page, nil
}

// isBefore compares two times that formatTime wrote.
func isBefore(a, b string) bool {
	first, _ := time.Parse(time.RFC3339Nano, a)
	second, _ := time.Parse(time.RFC3339Nano, b)
	return first.Before(second)
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
	f.Account = sel.requiredAccount()
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
