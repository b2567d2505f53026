package admin

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
)

// eventJSON is an event as the operator sees it.
type eventJSON struct {
	ID         string      `json:"id"`
	ReceivedAt string      `json:"received_at"`
	Kind       event.Kind  `json:"kind"`
	Source     string      `json:"source"`
	Account    account.ID  `json:"account"`
	State      event.State `json:"state"`
	Reason     string      `json:"reason"`
	Raw        string      `json:"raw"` // text, or hex when it is none
	Outcome    string      `json:"outcome"`
}

func eventOf(e event.Event) eventJSON {
	raw := string(e.Raw)
	if !utf8.ValidString(raw) {
		raw = hex.EncodeToString(e.Raw)
	}
	return eventJSON{
		ID: e.ID, ReceivedAt: stamp(e.ReceivedAt), Kind: e.Kind, Source: e.Source, Account: e.Account,
		State: e.State, Reason: e.Reason, Raw: raw, Outcome: e.Outcome,
	}
}

// events reads the filters of a selection and the intakes it is about.
func (s *Surface) events(sel *selection) ([]*intake.Intake, intake.Filter) {
	var kinds []string
	for _, k := range event.Kinds() {
		kinds = append(kinds, string(k))
	}
	f := intake.Filter{IDs: sel.ids()}
	kind := event.Kind(sel.oneOf("kind", kinds...))
	f.State = event.State(sel.oneOf("state", string(event.Done), string(event.Quarantined), string(event.Unrouted), string(event.Pending)))
	f.Account, f.Source, f.Device = sel.account(), sel.text("source"), sel.text("device")
	f.From, f.To, f.Query = sel.moment("from"), sel.moment("to"), sel.text("q")
	var of []*intake.Intake
	for _, in := range s.Intakes {
		if kind == "" || in.Kind() == kind {
			of = append(of, in)
		}
	}
	return of, f
}

// position is how far a list has come in each journal, "u123.s45" as a cursor.
type position map[event.Kind]uint64

// parsePosition reads a cursor; ok is false for what String did not write. An
// empty one is the beginning.
func parsePosition(cursor string) (p position, ok bool) {
	p = position{}
	if cursor == "" {
		return p, true
	}
	for part := range strings.SplitSeq(cursor, ".") {
		k := kindOf(part)
		if k == "" {
			return nil, false
		}
		seq, err := strconv.ParseUint(part[1:], 10, 63)
		if _, twice := p[k]; err != nil || seq == 0 || twice {
			return nil, false
		}
		p[k] = seq
	}
	return p, p.String() == cursor
}

// kindOf returns the kind that a part of a cursor begins with, "" for none.
func kindOf(part string) event.Kind {
	for _, k := range event.Kinds() {
		if strings.HasPrefix(part, string(k[:1])) {
			return k
		}
	}
	return ""
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

// candidate is an event and its place in its journal.
type candidate struct {
	event.Event
	seq uint64
}

func (s *Surface) listEvents(c *fiber.Ctx) error {
	sel, err := selectionOf(c)
	if err != nil {
		return err
	}
	intakes, f := s.events(sel)
	limit := sel.limit()
	at, ok := parsePosition(sel.cursor())
	if !ok {
		sel.bad("cursor", "want the next of an earlier page")
	}
	if err := sel.err(); err != nil {
		return err
	}
	lists := make([][]candidate, len(intakes))
	for i, in := range intakes {
		if lists[i], err = page(c.UserContext(), in, f, at[in.Kind()], limit+1); err != nil {
			return err
		}
	}
	found, more := merge(lists, limit)
	next := ""
	if more {
		for _, e := range found {
			at[e.Kind] = e.seq
		}
		next = at.String()
	}
	out := make([]eventJSON, len(found))
	for i, e := range found {
		out[i] = eventOf(e.Event)
	}
	return c.JSON(fiber.Map{"data": out, "meta": fiber.Map{"next": next}})
}

// merge takes the newest of several lists, at most limit, and tells whether
// there are more.
func merge(lists [][]candidate, limit int) (out []candidate, more bool) {
	for {
		best := newest(lists)
		if best < 0 {
			return out, false
		}
		if len(out) == limit {
			return out, true
		}
		out = append(out, lists[best][0])
		lists[best] = lists[best][1:]
	}
}

// page returns up to limit events of one journal, newest first.
func page(ctx context.Context, in *intake.Intake, f intake.Filter, below uint64, limit int) ([]candidate, error) {
	var out []candidate
	err := in.Events(ctx, f, below, func(e event.Event, seq uint64) bool {
		out = append(out, candidate{e, seq})
		return len(out) < limit
	})
	return out, err
}

// newest returns the list whose head is the newest, -1 when all are empty.
func newest(lists [][]candidate) int {
	best := -1
	for i, l := range lists {
		if len(l) > 0 && (best < 0 || l[0].ReceivedAt.After(lists[best][0].ReceivedAt)) {
			best = i
		}
	}
	return best
}

func (s *Surface) replayEvents(c *fiber.Ctx) error {
	sel, err := selectionOf(c)
	if err != nil {
		return err
	}
	intakes, f := s.events(sel)
	dry := sel.flag("dry_run")
	sel.require()
	limit := sel.limit()
	if err := sel.err(); err != nil {
		return err
	}
	if dry {
		return s.rehearse(c, intakes, f, limit)
	}
	count := 0
	for _, in := range intakes {
		n, err := in.Replay(c.UserContext(), f)
		count += n
		if err != nil {
			return err
		}
	}
	return c.JSON(fiber.Map{"count": count})
}
