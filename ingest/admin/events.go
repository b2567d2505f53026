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
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/inbound"
)

// eventJSON is an event in the form for the operator.
type eventJSON struct {
	ID         string          `json:"id"`
	ReceivedAt string          `json:"received_at"`
	Kind       event.Kind      `json:"kind"`
	Source     string          `json:"source"`
	Account    relay.AccountID `json:"account"`
	State      event.State     `json:"state"`
	Reason     string          `json:"reason"`
	Raw        string          `json:"raw"` // text, or hex when it is none
	Outcome    string          `json:"outcome"`
	Notes      []string        `json:"notes"`
	// Hidden reports that raw is left out: the caller may not read texts of messages.
	Hidden bool `json:"hidden,omitempty"`
}

func eventOf(e event.Event) eventJSON {
	raw := string(e.Raw)
	if !utf8.ValidString(raw) {
		raw = hex.EncodeToString(e.Raw)
	}
	return eventJSON{
		ID: e.ID, ReceivedAt: formatTime(e.ReceivedAt), Kind: e.Kind, Source: e.Source, Account: e.Account,
		State: e.State, Reason: e.Reason, Raw: raw, Outcome: e.Outcome, Notes: append([]string{}, e.Notes...),
	}
}

// events reads the filters of a selection and the intakes it is about.
func (s *Surface) events(sel *selection) ([]*intake.Intake, event.Filter) {
	f := event.Filter{IDs: sel.ids()}
	kind := oneOf(sel, "kind", event.Kinds()...)
	f.State = oneOf(sel, "state", event.Done, event.Quarantined, event.Unrouted, event.Pending)
	f.Account, f.Source, f.Device = sel.account(), sel.text("source"), sel.text("device")
	f.From, f.To, f.Query = sel.moment("from"), sel.moment("to"), sel.text("q")
	f.Number = sel.number()
	if kind == "" || hasTexts(kind) {
		sel.refuseTextSearch("q", "device")
	}
	var intakes []*intake.Intake
	for _, intake := range s.Intakes {
		if kind == "" || intake.Kind() == kind {
			intakes = append(intakes, intake)
		}
	}
	if f.Number != "" { // only messages have one, and the journal of frames may be long
		intakes = ofKind(intakes, event.SMS)
	}
	return intakes, f
}

// position is the place of a list in each journal of a gateway, "u123.s45" as a cursor.
type position map[event.Kind]uint64

// positions are the places of a list at each gateway, by node: "n1_u123.s45~n2_u7" as a
// cursor. A node's name holds neither _ nor ~.
type positions map[string]position

// parsePositions reads a cursor; ok is false for what String did not write. That
// of one gateway's own list is read as that gateway's.
func parsePositions(cursor, node string) (p positions, ok bool) {
	p = positions{}
	if !strings.Contains(cursor, "_") {
		pos, ok := parsePosition(cursor)
		return positions{node: pos}, ok
	}
	for part := range strings.SplitSeq(cursor, "~") {
		subject, path, _ := strings.Cut(part, "_")
		if _, twice := p[subject]; twice || path == "" {
			return nil, false
		}
		if p[subject], ok = parsePosition(path); !ok {
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

// set notes that a list of a node's events goes on below a sequence.
func (p positions) set(node string, kind event.Kind, seq uint64) {
	if p[node] == nil {
		p[node] = position{}
	}
	p[node][kind] = seq
}

// parsePosition reads a cursor; ok is false for what String did not write. An
// empty one is the beginning.
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
		if _, twice := p[k]; err != nil || seq == 0 || twice {
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

// repeated returns the same request for each gateway.
func repeated(c *fiber.Ctx) func(gateway.Gateway) peerRequest {
	r := passOn(c, passedOn(c))
	return func(gateway.Gateway) peerRequest { return r }
}

// tracedJSON is an event and its way through the gateway.
type tracedJSON struct {
	eventJSON
	Trace      []stepJSON     `json:"trace"`
	Deliveries []deliveryJSON `json:"deliveries"`
}

// stepJSON is one thing that happened to an event.
type stepJSON struct {
	At      *string `json:"at"`      // null when no time is kept
	Step    string  `json:"step"`    // received, read, duplicate, joined, rule, routed, attempt
	Message string  `json:"message"` // its id; empty for the whole event
	Text    string  `json:"text"`
}

// getEvent shows one event with its trace. That of another gateway is requested from that
// one.
func (s *Surface) getEvent(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("event"))
	t, err := s.traced(c, id)
	if err != nil {
		return err
	}
	if !sees(c, t.Account) {
		return relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	t.Deliveries = slices.DeleteFunc(t.Deliveries, func(d deliveryJSON) bool { return !sees(c, d.Account) })
	t.hide(c)
	return c.JSON(fiber.Map{"data": t})
}

// traced returns an event of this gateway, or of the one that its id names.
func (s *Surface) traced(c *fiber.Ctx, id string) (tracedJSON, error) {
	trace, err := s.Trace(c.UserContext(), id)
	if err == nil {
		return tracedJSON{
			eventJSON: eventOf(trace.Event), Deliveries: httpd.Each(trace.Deliveries, deliveryOf),
			Trace: httpd.Each(trace.Steps, func(s inbound.Step) stepJSON {
				return stepJSON{At: formatTimeOrNil(s.At), Step: s.Name, Message: s.Message, Text: s.Text}
			}),
		}, nil
	}
	if relay.KindOf(err) != relay.KindNotFound {
		return tracedJSON{}, err
	}
	t, found, err := s.Peers.tracedAt(c, nodeOf(id))
	if err == nil && !found {
		err = relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	return t, err
}
