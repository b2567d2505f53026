package inbound

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// heap is a store of parts in memory.
type heap struct {
	w      *world
	parts  map[string][]Message
	due    []ReassembledMessage
	parked map[string]ReassembledMessage // by event
	ended  []string
	times  Times
}

func (h *heap) Add(_ context.Context, all []Arrival, t Times) ([]Added, error) {
	if err := h.w.fails("parts"); err != nil {
		return nil, err
	}
	h.times = t
	out := make([]Added, len(all))
	for i, a := range all {
		if g, ok := h.parked[a.Message.ID]; ok {
			out[i] = Added{State: Again, Holder: g.ID, Group: g}
			continue
		}
		h.parts[a.Group] = append(h.parts[a.Group], a.Message)
		out[i].State = Waiting
		if len(h.parts[a.Group]) == a.Total {
			out[i] = Added{State: Completed, Holder: "J", Group: ReassembledMessage{Group: a.Group, ID: "J", Parts: h.parts[a.Group]}}
		}
	}
	return out, nil
}

func (h *heap) Due(context.Context, Times, int) ([]ReassembledMessage, error) {
	due := h.due
	h.due = nil
	return due, h.w.fails("due")
}

func (h *heap) End(_ context.Context, all []ReassembledMessage) error {
	for _, g := range all {
		h.ended = append(h.ended, g.ID)
	}
	return h.w.fails("end")
}

func (h *heap) Park(_ context.Context, g ReassembledMessage, keep time.Duration) error {
	if keep != 7*24*time.Hour {
		return errors.New("want seven days")
	}
	h.parked[g.Event] = g
	return nil
}

func (h *heap) MessageOf(_ context.Context, group, part string) (string, error) {
	for _, m := range h.parts[group] {
		if m.ID == part && len(h.ended) > 0 {
			return "J", nil
		}
	}
	return "", h.w.fails("whole")
}

func (h *heap) Unpark(_ context.Context, g ReassembledMessage) error {
	delete(h.parked, g.Event)
	return nil
}

// Put records a quarantined event with its reason.
func (h *heap) Put(_ context.Context, m *Message, r Result) error {
	h.w.quarantined = append(h.w.quarantined, m.ID+": "+cmp.Or(r.Reason, r.Outcome))
	return h.w.fails("aside")
}

// target returns the target of the n-th dispatched delivery.
func (w *world) target(n int) string {
	d := w.saved[w.sent[n]]
	return d.Target()
}

// piece is part n of total, with the reference cc.
func piece(id, to string, n, total byte, text string) Message {
	m := numbered(id, to)
	m.UDH, m.Text, m.Status = []byte{5, 0, 3, 0xcc, total, n}, text, Concatenated
	return m
}

func TestPartsAreJoinedAndSentOn(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/%id?m=%msg&s=%stat&u=%udh"))
	s := w.service(t)
	got := receive(t, s, piece("e1", "447860000001", 2, 2, "world"), numbered("e2", "447860000001"), piece("e3", "447860000001", 1, 2, "hello "))
	relaytest.Equal(t, "note and state of the first part", []any{got[0].Outcome, got[0].State}, []any{"", event.Done})
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e2", "J"})
	relaytest.Equal(t, "message id and note of the last part", []string{got[2].MessageID, got[2].Outcome}, []string{"J", ""})
	relaytest.Equal(t, "the target of the joined message", w.target(1), "http://a/J?m=hello%20world&s=1&u=")
	relaytest.Equal(t, "the message id of the joined message", w.saved[w.sent[1]].MessageID, "J")
	relaytest.Equal(t, "the number of ended groups", len(w.heap.ended), 1)
	relaytest.Equal(t, "the number of parked messages", len(w.heap.parked), 0)
	relaytest.Equal(t, "the times", w.heap.times, Times{now(), 5 * time.Minute, time.Minute})
}

func TestAGroupEndsOnlyAfterItWasSaved(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/"))
	s := w.service(t)
	w.down = "deliveries"
	if _, err := s.Receive(t.Context(), []Message{piece("e1", "447860000001", 1, 2, "a"), piece("e2", "447860000001", 2, 2, "b")}); !errors.Is(err, errDown) {
		t.Fatalf("got %v", err)
	}
	w.heap.due = []ReassembledMessage{{Group: "g", ID: "e1", Parts: []Message{piece("e1", "447860000001", 1, 2, "a")}}}
	if _, err := s.RouteDue(t.Context()); !errors.Is(err, errDown) {
		t.Fatalf("got %v", err)
	}
	if len(w.heap.ended) != 0 {
		t.Errorf("groups %v were ended although the sweep failed", w.heap.ended)
	}
	for _, port := range []string{"parts", "due", "end"} {
		w.down = port
		_, received := s.Receive(t.Context(), []Message{piece("e1", "447860000001", 1, 2, "a")})
		w.heap.due = []ReassembledMessage{{Group: "g", ID: "e1", Parts: []Message{piece("e1", "447860000001", 1, 2, "a")}}}
		_, swept := s.RouteDue(t.Context())
		if !errors.Is(errors.Join(received, swept), errDown) {
			t.Errorf("%s: %v, %v", port, received, swept)
		}
	}
}

func TestAnIncompleteMessageIsRelayedWithAGapAfterTheTimeout(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/%id?m=%msg&s=%stat"))
	w.heap.due = []ReassembledMessage{{Group: "g", ID: "e1", Parts: []Message{piece("e1", "447860000001", 1, 3, "a"), piece("e3", "447860000001", 3, 3, "c")}}}
	if n, err := w.service(t).RouteDue(t.Context()); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	if len(w.sent) != 1 {
		t.Fatalf("%d deliveries, want 1", len(w.sent))
	}
	relaytest.Equal(t, "the target", w.target(0), "http://a/e1?m=a%5B%E2%80%A6%5Dc&s=1")
	relaytest.Equal(t, "the number of ended groups", len(w.heap.ended), 1)
}

func TestAnUnroutedJoinedMessageIsParkedAndTriedAgain(t *testing.T) {
	w := newWorld()
	s := w.service(t)
	last := piece("e2", "447860000001", 2, 2, "b")
	got := receive(t, s, piece("e1", "447860000001", 1, 2, "a"), last)
	counts := func() []int { return []int{len(w.heap.parked), len(w.heap.ended)} }
	relaytest.Equal(t, "the state of the last part", got[1].State, event.Unrouted)
	relaytest.Equal(t, "the number of parked messages and ended groups", counts(), []int{1, 1})
	relaytest.Equal(t, "the state of the last part, received again", receive(t, s, last)[0].State, event.Unrouted)
	relaytest.Equal(t, "the number of parked messages and ended groups after it", counts(), []int{1, 1})
	w.relays, w.version = []Relay{vmn("v1", "447860000001", HTTPGet, "http://a/?m=%msg")}, 2
	routed := receive(t, s, last)
	relaytest.Equal(t, "the state with a relay", routed[0].State, event.Done)
	relaytest.Equal(t, "the target", w.target(0), "http://a/?m=ab")
	relaytest.Equal(t, "the number of parked messages and ended groups at the end", counts(), []int{0, 1})
}

func TestASweepQuarantinesUnroutedMessages(t *testing.T) {
	w := newWorld()
	w.heap.due = []ReassembledMessage{{Group: "g", ID: "e1", Parts: []Message{piece("e1", "447860000001", 1, 2, "a")}}}
	if n, err := w.service(t).RouteDue(t.Context()); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	relaytest.Equal(t, "the id of the parked message", w.heap.parked["e1"].ID, "e1")
	relaytest.Equal(t, "the quarantined events", w.quarantined, []string{"e1: no relay for 447860000001"})
}

// The store of parts returns a dropped repetition once, also if its note fails.
func TestTheNoteOfADroppedRepetitionIsTriedAgain(t *testing.T) {
	w := newWorld()
	s := w.service(t)
	w.heap.due = []ReassembledMessage{{Group: "g", Repeats: "e1", Parts: []Message{piece("e3", "447860000001", 2, 2, "b")}}}
	w.down = "aside"
	if _, err := s.RouteDue(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("the error is %v, want %v", err, errDown)
	}
	w.down, w.quarantined = "", nil
	relaytest.Must(s.RouteDue(t.Context()))(t)
	relaytest.Must(s.RouteDue(t.Context()))(t)
	relaytest.Equal(t, "the notes", w.quarantined, []string{"e3: duplicate of e1"})
}

func TestPartsThatWereDroppedAreNoted(t *testing.T) {
	w := newWorld()
	w.heap.due = []ReassembledMessage{{Group: "g", Repeats: "e1", Parts: []Message{piece("e3", "447860000001", 2, 2, "b")}}}
	n, err := w.service(t).RouteDue(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of groups", n, 1)
	relaytest.Equal(t, "the noted events", w.quarantined, []string{"e3: duplicate of e1"})
	relaytest.Equal(t, "the number of deliveries", len(w.sent), 0)
}

func TestPartOf(t *testing.T) {
	for name, tc := range map[string]struct {
		udh  string
		part *Part
		want Part
		ok   bool
	}{
		"no UDH":                   {},
		"ports":                    {udh: "\x06\x05\x04\x0b\x84\x23\xf0"},
		"an 8-bit reference":       {udh: "\x05\x00\x03\xcc\x02\x01", want: Part{Reference8, 0xcc, 2, 1}, ok: true},
		"a 16-bit reference":       {udh: "\x06\x08\x04\xab\xcd\x03\x02", want: Part{Reference16, 0xabcd, 3, 2}, ok: true},
		"beside ports":             {udh: "\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x01\x02\x02", want: Part{Reference8, 1, 2, 2}, ok: true},
		"a message of one part":    {udh: "\x05\x00\x03\xcc\x01\x01", want: Part{Reference8, 0xcc, 1, 1}},
		"a part beyond the total":  {udh: "\x05\x00\x03\xcc\x02\x03"},
		"a UDH cut off":            {udh: "\x05\x00\x03"},
		"what the carrier says":    {part: &Part{ReferenceSAR, 7, 2, 2}, want: Part{ReferenceSAR, 7, 2, 2}, ok: true},
		"the carrier before UDH":   {udh: "\x05\x00\x03\xcc\x02\x01", part: &Part{ReferenceSAR, 7, 3, 2}, want: Part{ReferenceSAR, 7, 3, 2}, ok: true},
		"one part, as it is said":  {part: &Part{ReferenceSAR, 7, 1, 1}, want: Part{ReferenceSAR, 7, 1, 1}},
		"the last element decides": {udh: "\x0a\x00\x03\x01\x02\x01\x00\x03\x02\x02\x02", want: Part{Reference8, 2, 2, 2}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := PartOf(&Message{UDH: []byte(tc.udh), Part: tc.part})
			relaytest.Equal(t, "whether the message is a part", ok, tc.ok)
			if ok {
				relaytest.Equal(t, "the part", got, tc.want)
			}
		})
	}
}

func TestPartsOfDifferentMessagesHaveDifferentKeys(t *testing.T) {
	base := piece("e1", "447860000001", 1, 2, "a")
	key := func(change func(*Message)) string {
		m := base
		m.UDH = []byte(string(base.UDH))
		change(&m)
		p, ok := PartOf(&m)
		if !ok {
			t.Fatal("no part")
		}
		return groupKey(&m, p)
	}
	same := key(func(m *Message) { m.UDH[5], m.ID, m.Text, m.CarrierID = 2, "e2", "b", "x" })
	if same != key(func(*Message) {}) || len(same) != 32 || strings.Trim(same, "0123456789abcdef") != "" {
		t.Errorf("the other part has the key %q", same)
	}
	for name, change := range map[string]func(*Message){
		"account":   func(m *Message) { m.Account = 2 },
		"carrier":   func(m *Message) { m.Carrier = "kannel" },
		"sender":    func(m *Message) { m.From = "447700900124" },
		"number":    func(m *Message) { m.To = "447860000002" },
		"reference": func(m *Message) { m.UDH[3] = 0xcd },
		"total":     func(m *Message) { m.UDH[4] = 3 },
		"width":     func(m *Message) { m.UDH = []byte{6, 8, 4, 0, 0xcc, 2, 1} },
		"SAR":       func(m *Message) { m.Part = &Part{ReferenceSAR, 0xcc, 2, 1} },
	} {
		if key(change) == same {
			t.Errorf("another %s has the same key", name)
		}
	}
}
