package admin

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// The directions of messages.
const (
	directionReceived = "in"
	directionSent     = "out"
)

type messageJSON struct {
	Direction    string          `json:"direction"`
	ID           message.ID      `json:"id"` // 0 for a received message
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
	// Code is the delivery report code of the whole message; 0 if there is none yet.
	Code  message.Code `json:"code"`
	Parts []partJSON   `json:"parts"`
	// Event is the event of a received message; nil for a sent one.
	Event *eventJSON `json:"event,omitempty"`
	// Hidden means that texts are omitted because the caller may not read them.
	Hidden bool `json:"hidden,omitempty"`
	// Undecryptable means that the record cannot be decrypted (see relay.ErrUndecryptable). Its
	// encrypted fields are omitted.
	Undecryptable bool `json:"unopened,omitempty"`
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

// messageOf returns a sent message for an answer. The Reason of a pending part that is due is the
// current reason for waiting, if there is one.
func (s *Surface) messageOf(m *message.Message) messageJSON {
	view := messageJSON{
		Direction: directionSent, ID: m.ID, Account: m.Account, Originator: m.Originator, Destination: m.Destination, Coding: m.Coding,
		Undecryptable: m.Undecryptable, Flash: m.Flash, Replace: m.Replace, ReportTo: outbox.MaskTarget(m.Report.URL), Origin: m.Origin, IP: m.IP,
		ReceivedAt: formatTime(m.ReceivedAt), ScheduledFor: formatTime(m.ScheduledFor), Parts: make([]partJSON, len(m.Parts)),
	}
	view.Code, _ = m.Code()
	waitReason := sync.OnceValue(func() string { return s.WaitReason(m.Destination) })
	for n := range m.Parts {
		p := &m.Parts[n]
		view.Parts[n] = partJSON{
			ID: m.PartID(n), State: p.State, Simulated: p.Simulated(), Carrier: p.Carrier, CarrierID: p.CarrierID,
			Reason: p.Reason, Report: p.Report, Data: m.Body(n), ScheduledAt: formatTime(p.ScheduledAt), ChangedAt: formatTime(p.ChangedAt),
		}
		if p.State == message.Pending && !p.ScheduledAt.After(s.Now()) {
			view.Parts[n].Reason = cmp.Or(waitReason(), p.Reason)
		}
	}
	return view
}

// receivedMessage returns the message of an event, with the numbers of its first message.
func receivedMessage(e eventJSON) messageJSON {
	view := messageJSON{
		Direction: directionReceived, Account: e.Account, Originator: e.From, Destination: e.To, ReceivedAt: e.ReceivedAt, Parts: []partJSON{}, Event: &e,
	}
	e.From, e.To = "", ""
	return view
}

// messageFilter reads a filter of messages in one of states.
func (s *selection) messageFilter(states ...message.State) message.Filter {
	return message.Filter{Account: s.account(), State: oneOf(s, "state", states...), Number: s.number()}
}

// listMessages lists sent and received messages of one or all accounts, newest first.
func (s *Surface) listMessages(c *fiber.Ctx, sel *selection) error {
	// A received message has the state of its event.
	eventStates := httpd.Each(event.States(), func(e event.State) message.State { return message.State(e) })
	f := sel.messageFilter(slices.Compact(slices.Concat(eventStates, message.States()))...)
	selects := func(states []message.State) bool { return f.State == "" || slices.Contains(states, f.State) }
	list := messageList{limit: sel.limit(), endID: 1}
	direction := oneOf(sel, "direction", directionReceived, directionSent)
	var eventCursor string
	parseCursor(sel, &eventCursor, &f.Before)
	places, ok := parsePositions(eventCursor, s.Node)
	if !ok {
		sel.Add("cursor", invalidCursor)
	}
	searchUntil := sel.searchUntil()
	if err := sel.Err(); err != nil {
		return err
	}
	// 1. Find the sent messages.
	var err error
	if direction != directionReceived && selects(message.States()) {
		if err = s.findSent(c, &list, f); err != nil {
			return err
		}
	}
	// 2. Find the received messages in the journals.
	if list.events = (&eventList{places: places}); direction != directionSent && selects(eventStates) {
		intakes := ofKind(s.Intakes, event.SMS)
		query := url.Values{"kind": {string(event.SMS)}, "state": {string(f.State)}}
		if text := sel.option("search_ms"); text != "" {
			query.Set("search_ms", text)
		}
		if f.Number != "" {
			query.Set("number", f.Number)
		}
		search := intake.Search{Filter: event.Filter{Account: f.Account, Number: f.Number, State: event.State(f.State)}, Until: searchUntil}
		list.events, err = s.findEvents(c, intakes, search, places, list.limit, query)
		if err != nil {
			return err
		}
	}
	// 3. Merge the page.
	defer list.events.sources.stop()
	views, err := list.merge(hidesTexts(c))
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": views, "meta": list.events.meta})
}

// findSent reads the sent messages for a page.
func (s *Surface) findSent(c *fiber.Ctx, list *messageList, f message.Filter) error {
	accounts := []relay.AccountID{f.Account}
	if f.Account == 0 {
		stored, err := s.Accounts.Accounts(c.UserContext())
		if err != nil {
			return err
		}
		accounts = httpd.Each(stored, func(a account.Account) relay.AccountID { return a.ID })
	}
	list.endID = cmp.Or(f.Before, math.MaxInt64)
	messages, err := readInPieces(list.limit, sizeOfMessage, func(n int) (found []message.Message, hasMore bool, err error) {
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
	sent    []messageJSON // the sent messages that are not on the page yet, newest first
	hasMore bool          // the store has older sent messages
	endID   message.ID    // the next page begins with sent messages below this id
	events  *eventList
}

// merge returns a page, newest first, and sets l.events.meta.
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
			page, l.endID = append(page, l.sent[0]), l.sent[0].ID
			l.sent = l.sent[1:]
			continue
		case src != nil && (len(l.sent) > 0 || !l.hasMore):
			e := *src.head
			l.events.pass(src)
			e.hideText(hidden)
			page = append(page, receivedMessage(e))
			continue
		}
		break
	}
	if err := l.events.setNextCursor(); err != nil {
		return nil, err
	}
	hasMore := l.events.meta.Next != "" || len(l.sent) > 0 || l.hasMore
	if len(l.sent) == 0 && !l.hasMore {
		l.endID = 1
	}
	l.events.meta.Next = ""
	if hasMore {
		l.events.meta.Next = formatCursor("%d %s", l.endID, l.events.places)
	}
	return page, nil
}

// isBefore reports whether a is before b. Both are results of formatTime.
func isBefore(a, b string) bool {
	timeA, _ := time.Parse(time.RFC3339Nano, a)
	timeB, _ := time.Parse(time.RFC3339Nano, b)
	return timeA.Before(timeB)
}

// sizeOfMessage returns the approximate size of a message, in bytes.
func sizeOfMessage(m *message.Message) int {
	size := 500
	for i := range m.Parts {
		size += 300 + len(m.Parts[i].Text) + len(m.Parts[i].Data)
	}
	return size
}

// resendMessages sends the message parts in state unknown again.
func (s *Surface) resendMessages(c *fiber.Ctx, sel *selection) error {
	f := sel.messageFilter(message.States()...)
	for _, text := range sel.ids() {
		id, ok := message.ParseID(text)
		if !ok {
			sel.Add("ids", "The ids must be ids of messages, not "+strconv.Quote(text)+".")
		}
		f.IDs = append(f.IDs, id)
	}
	if len(f.IDs) == 0 && sel.Problems["ids"] == nil {
		sel.AddNamed("ids", "The %s field is required.")
	}
	sel.requireAccount(f.Account)
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
