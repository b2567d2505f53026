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

func parsePosition(cursor string) position {
	p := position{}
	for _, part := range strings.Split(cursor, ".") {
		for _, k := range event.Kinds() {
			if rest, ok := strings.CutPrefix(part, string(k[:1])); ok {
				p[k], _ = strconv.ParseUint(rest, 10, 64)
			}
		}
	}
	return p
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
	limit, at := sel.limit(), parsePosition(sel.cursor())
	if err := sel.err(); err != nil {
		return err
	}
	lists := make([][]candidate, len(intakes))
	for i, in := range intakes {
		if lists[i], err = page(c.UserContext(), in, f, at[in.Kind()], limit+1); err != nil {
			return err
		}
	}
	out := make([]eventJSON, 0, limit)
	more := false
	for {
		best := newest(lists)
		if best < 0 {
			break
		}
		if more = len(out) == limit; more {
			break
		}
		e := lists[best][0]
		lists[best] = lists[best][1:]
		at[e.Kind] = e.seq
		out = append(out, eventOf(e.Event))
	}
	next := ""
	if more {
		next = at.String()
	}
	return c.JSON(fiber.Map{"data": out, "meta": fiber.Map{"next": next}})
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
	if err := sel.err(); err != nil {
		return err
	}
	count := 0
	for _, in := range intakes {
		n, err := in.Replay(c.UserContext(), f, dry)
		count += n
		if err != nil {
			return err
		}
	}
	return c.JSON(fiber.Map{"count": count})
}
