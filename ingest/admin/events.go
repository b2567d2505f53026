package admin

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
)

type eventJSON struct {
	ID         string          `json:"id"`
	ReceivedAt string          `json:"received_at"`
	Kind       event.Kind      `json:"kind"`
	Source     string          `json:"source"`
	Account    relay.AccountID `json:"account"`
	State      event.State     `json:"state"`
	Reason     string          `json:"reason"`
	Raw        string          `json:"raw"` // text, or hex if it is not UTF-8
	Outcome    string          `json:"outcome"`
	Notes      []string        `json:"notes"`
	// From and To are the numbers of the first message. Only answers to other gateways have
	// From and To, which the list of messages needs.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Hidden means that Raw is omitted because the caller may not read texts of messages.
	Hidden bool `json:"hidden,omitempty"`
}

// eventOf returns an event for an answer. item is the event's journal entry, or nil to omit From and
// To.
func (s *Surface) eventOf(e event.Event, item *intake.Item) eventJSON {
	view := eventJSON{
		ID: e.ID, ReceivedAt: formatTime(e.ReceivedAt), Kind: e.Kind, Source: e.Source, Account: e.Account,
		State: e.State, Reason: e.Reason, Raw: string(e.Raw), Outcome: e.Outcome, Notes: append([]string{}, e.Notes...),
	}
	if !utf8.ValidString(view.Raw) {
		view.Raw = hex.EncodeToString(e.Raw)
	}
	if e.Kind != event.SMS || item == nil {
		return view
	}
	_ = relay.Recovered("numbers of event "+e.ID, func() error { // an unreadable post has no numbers
		messages, _, err := s.ReadPost(item)
		if len(messages) > 0 {
			view.From, view.To = messages[0].From, messages[0].To
		}
		return err
	})
	return view
}

// readEventFilter reads a filter of events, and returns the journals to search with the filter.
func (s *Surface) readEventFilter(sel *selection) ([]*intake.Intake, event.Filter) {
	f := event.Filter{IDs: sel.ids()}
	kind := oneOf(sel, "kind", event.Kinds()...)
	f.State = oneOf(sel, "state", event.States()...)
	f.Account, f.Source = sel.account(), sel.text("source")
	device := sel.text("device")
	if f.Device, _ = iot.NormalizeIdentifier(device); f.Device == "" && device != "" {
		sel.Add("device", "The device must not be blank.")
	}
	f.From, f.To, f.Query = sel.timestamp("from"), sel.timestamp("to"), sel.text("q")
	f.Number = sel.number()
	if kind == "" || hasTexts(kind) {
		sel.refuseTextSearch("q", "device")
	}
	intakes := s.Intakes
	if kind != "" {
		intakes = ofKind(intakes, kind)
	}
	if f.Number != "" { // only messages have a number, and the journal of frames may be long
		intakes = ofKind(intakes, event.SMS)
	}
	return intakes, f
}

// position is the position of a list in each journal of a gateway: the list continues with
// sequences below it. As a cursor it is "u123.s45".
type position map[event.Kind]uint64

// positions maps nodes to the positions of a list. As a cursor they are "n1_u123.s45~n2_u7"; the
// name of a node contains neither _ nor ~.
type positions map[string]position

// parsePositions parses a cursor of several gateways, or of node only. ok is false for a cursor that
// String does not return.
func parsePositions(cursor, node string) (p positions, ok bool) {
	p = positions{}
	if !strings.Contains(cursor, "_") {
		pos, ok := parsePosition(cursor)
		return positions{node: pos}, ok
	}
	for part := range strings.SplitSeq(cursor, "~") {
		name, path, _ := strings.Cut(part, "_")
		if _, repeated := p[name]; repeated || path == "" {
			return nil, false
		}
		if p[name], ok = parsePosition(path); !ok {
			return nil, false
		}
	}
	return p, p.String() == cursor
}

func (p positions) String() string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(p)) {
		if path := p[node].String(); path != "" {
			parts = append(parts, node+"_"+path)
		}
	}
	return strings.Join(parts, "~")
}

// set records that the list continues below a sequence of a node's journal.
func (p positions) set(node string, kind event.Kind, seq uint64) {
	if p[node] == nil {
		p[node] = position{}
	}
	p[node][kind] = seq
}

// parsePosition parses a cursor; an empty cursor is the beginning of the list. ok is false for a
// cursor that String does not return.
func parsePosition(cursor string) (p position, ok bool) {
	p = position{}
	if cursor == "" {
		return p, true
	}
	for part := range strings.SplitSeq(cursor, ".") {
		i := slices.IndexFunc(event.Kinds(), func(k event.Kind) bool { return strings.HasPrefix(part, string(k[:1])) })
		if i < 0 {
			return nil, false
		}
		k := event.Kinds()[i]
		seq, err := strconv.ParseUint(part[1:], 10, 63)
		if _, repeated := p[k]; err != nil || seq == 0 || repeated {
			return nil, false
		}
		p[k] = seq
	}
	return p, p.String() == cursor
}

func (p position) String() string {
	var parts []string
	for _, k := range event.Kinds() {
		if seq, ok := p[k]; ok {
			parts = append(parts, string(k[:1])+strconv.FormatUint(seq, 10))
		}
	}
	return strings.Join(parts, ".")
}

// tracedJSON is an event with the steps of its processing.
type tracedJSON struct {
	eventJSON
	Trace      []stepJSON     `json:"trace"`
	Deliveries []deliveryJSON `json:"deliveries"`
}

// stepJSON is a step in the processing of an event.
type stepJSON struct {
	At      *string `json:"at"`      // null if the time is unknown
	Step    string  `json:"step"`    // received, read, duplicate, joined, rule, routed, attempt
	Message string  `json:"message"` // the id of the message; empty for the whole event
	Text    string  `json:"text"`
}

// getEvent answers with an event and its trace. If this gateway does not have the event, getEvent
// queries the gateway that the id names.
func (s *Surface) getEvent(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("event"))
	view, err := s.tracedEvent(c, id)
	if err != nil {
		return err
	}
	if !sees(c, view.Account) {
		return relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	view.Deliveries = slices.DeleteFunc(view.Deliveries, func(d deliveryJSON) bool { return !sees(c, d.Account) })
	view.hide(c)
	return c.JSON(fiber.Map{"data": view})
}

// tracedEvent returns an event with its trace, from the gateway that has the event.
func (s *Surface) tracedEvent(c *fiber.Ctx, id string) (tracedJSON, error) {
	trace, err := s.Trace(c.UserContext(), id)
	if relay.KindOf(err) == relay.KindNotFound {
		return s.Peers.tracedEvent(c, id)
	}
	return tracedJSON{
		eventJSON: s.eventOf(trace.Event, nil), Deliveries: httpd.Each(trace.Deliveries, deliveryOf),
		Trace: httpd.Each(trace.Steps, func(s inbound.Step) stepJSON {
			return stepJSON{At: formatTimeOrNil(s.At), Step: s.Name, Message: s.Message, Text: s.Text}
		}),
	}, err
}
