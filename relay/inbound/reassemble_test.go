package inbound

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// piece returns part n of total of a message with the reference 0xcc.
func piece(id, number string, n, total byte, text string) Message {
	m := numbered(id, number)
	m.UDH, m.Text, m.Stat = []byte{5, 0, 3, 0xcc, total, n}, text, Concatenated
	return m
}

// joinWait is a second longer than the wait for missing parts.
const joinWait = 5*time.Minute + time.Second

func TestPartsAreJoinedAndRelayed(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/%id?m=%msg&s=%stat&u=%udh"))
	got := receive(t, w.service(), piece("e1", "447860000001", 2, 2, "world"), numbered("e2", "447860000001"), piece("e3", "447860000001", 1, 2, "hello "))
	relaytest.Equal(t, "outcome and state of the first part", []any{got[0].Outcome, got[0].State}, []any{"", event.Done})
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e2", "e3"})
	relaytest.Equal(t, "message id and outcome of the last part", []string{got[2].MessageID, got[2].Outcome}, []string{"e3", ""})
	relaytest.Equal(t, "the target of the joined message", w.sent[1].Target(), "http://a/e3?m=hello%20world&s=1&u=")
	relaytest.Equal(t, "the numbers of ready and of parked messages", []int{w.rows("part_ready"), w.rows("part_parked")}, []int{0, 0})
}

func TestAGroupEndsAfterItsDeliveriesAreSaved(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/"))
	s := w.service()
	mend := w.breakTable("delivery")
	if _, err := s.Receive(t.Context(), []Message{piece("e1", "447860000001", 1, 2, "a"), piece("e2", "447860000001", 2, 2, "b")}); err == nil {
		t.Fatal("Receive returned no error, although no delivery was saved")
	}
	w.clock = w.clock.Add(2 * time.Minute) // the lease has expired
	if _, err := s.RouteDue(t.Context()); err == nil {
		t.Fatal("RouteDue returned no error, although no delivery was saved")
	}
	relaytest.Equal(t, "the messages that are ready", w.rows("part_ready"), 1)
	mend()
	w.clock = w.clock.Add(2 * time.Minute)
	relaytest.Equal(t, "the number of routed messages", relaytest.Must(s.RouteDue(t.Context()))(t), 1)
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1"})
	relaytest.Equal(t, "the messages that are ready at the end", w.rows("part_ready"), 0)
}

func TestReceiveAndRouteDueFailWithoutTheTablesOfParts(t *testing.T) {
	for _, table := range []string{"part", "part_group", "part_ready"} {
		w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/"))
		s := w.service()
		receive(t, s, piece("e1", "447860000001", 1, 3, "a"))
		w.clock = w.clock.Add(joinWait)
		w.breakTable(table)
		if _, err := s.Receive(t.Context(), []Message{piece("e2", "447860000001", 2, 3, "b")}); err == nil {
			t.Errorf("%s: Receive returns no error", table)
		}
		if _, err := s.RouteDue(t.Context()); err == nil {
			t.Errorf("%s: RouteDue returns no error", table)
		}
	}
}

func TestAnIncompleteMessageIsRelayedWithAGapAfterTheTimeout(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/%id?m=%msg&s=%stat"))
	s := w.service()
	receive(t, s, piece("e1", "447860000001", 1, 3, "a"), piece("e3", "447860000001", 3, 3, "c"))
	w.clock = w.clock.Add(joinWait)
	relaytest.Equal(t, "the number of routed messages", relaytest.Must(s.RouteDue(t.Context()))(t), 1)
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1"})
	relaytest.Equal(t, "the target", w.sent[0].Target(), "http://a/e1?m=a%5B%E2%80%A6%5Dc&s=1")
	relaytest.Equal(t, "the messages that are ready", w.rows("part_ready"), 0)
}

func TestAnUnroutedJoinedMessageIsParkedAndRetried(t *testing.T) {
	w := newWorld(t)
	s := w.service()
	lastPart := piece("e2", "447860000001", 2, 2, "b")
	got := receive(t, s, piece("e1", "447860000001", 1, 2, "a"), lastPart)
	counts := func() []int { return []int{w.rows("part_parked"), w.rows("part_ready")} }
	relaytest.Equal(t, "the state of the last part", got[1].State, event.Unrouted)
	relaytest.Equal(t, "the numbers of parked and of ready messages", counts(), []int{1, 0})
	relaytest.Equal(t, "the state of the last part, received again", receive(t, s, lastPart)[0].State, event.Unrouted)
	relaytest.Equal(t, "the numbers of parked and of ready messages after the repetition", counts(), []int{1, 0})
	relaytest.NoError(t, w.store.Put(t.Context(), vmn("v1", "447860000001", HTTPGet, "http://a/?m=%msg")))
	routed := receive(t, s, lastPart)
	relaytest.Equal(t, "the state with a relay", routed[0].State, event.Done)
	relaytest.Equal(t, "the target", w.sent[0].Target(), "http://a/?m=ab")
	relaytest.Equal(t, "the numbers of parked and of ready messages at the end", counts(), []int{0, 0})
}

func TestRouteDueNotesUnroutedMessages(t *testing.T) {
	w := newWorld(t)
	s := w.service()
	receive(t, s, piece("e1", "447860000001", 1, 2, "a"))
	w.clock = w.clock.Add(joinWait)
	relaytest.Equal(t, "the number of routed messages", relaytest.Must(s.RouteDue(t.Context()))(t), 1)
	relaytest.Equal(t, "the number of parked messages", w.rows("part_parked"), 1)
	relaytest.Equal(t, "the noted events", w.notes, []string{"e1: no relay for 447860000001"})
}

// The store of parts returns a dropped repetition only once, even if saving its status fails.
func TestTheStatusOfADroppedRepetitionIsRetried(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/"))
	s := w.service()
	receive(t, s, piece("e1", "447860000001", 1, 2, "a"), piece("e2", "447860000001", 2, 2, "b"), piece("e3", "447860000001", 2, 2, "b"))
	w.clock = w.clock.Add(joinWait)
	w.noteErr = errDown
	if _, err := s.RouteDue(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("error = %v, want %v", err, errDown)
	}
	w.noteErr = nil
	relaytest.Must(s.RouteDue(t.Context()))(t)
	relaytest.Must(s.RouteDue(t.Context()))(t)
	relaytest.Equal(t, "the noted events", w.notes, []string{"e3: duplicate of e1"})
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1"})
}

func TestPartOfReadsTheConcatenation(t *testing.T) {
	for name, tc := range map[string]struct {
		udh  string
		part *Part
		want Part
		ok   bool
	}{
		"no UDH":                       {},
		"ports":                        {udh: "\x06\x05\x04\x0b\x84\x23\xf0"},
		"an 8-bit reference":           {udh: "\x05\x00\x03\xcc\x02\x01", want: Part{Reference8, 0xcc, 2, 1}, ok: true},
		"a 16-bit reference":           {udh: "\x06\x08\x04\xab\xcd\x03\x02", want: Part{Reference16, 0xabcd, 3, 2}, ok: true},
		"a reference and ports":        {udh: "\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x01\x02\x02", want: Part{Reference8, 1, 2, 2}, ok: true},
		"a message of one part":        {udh: "\x05\x00\x03\xcc\x01\x01"},
		"a part beyond the total":      {udh: "\x05\x00\x03\xcc\x02\x03"},
		"a truncated UDH":              {udh: "\x05\x00\x03"},
		"the carrier's SAR parameters": {part: &Part{ReferenceSAR, 7, 2, 2}, want: Part{ReferenceSAR, 7, 2, 2}, ok: true},
		"the carrier's parameters have precedence over the UDH": {udh: "\x05\x00\x03\xcc\x02\x01", part: &Part{ReferenceSAR, 7, 3, 2}, want: Part{ReferenceSAR, 7, 3, 2}, ok: true},
		"one part in the carrier's parameters":                  {part: &Part{ReferenceSAR, 7, 1, 1}},
		"the last element has precedence":                       {udh: "\x0a\x00\x03\x01\x02\x01\x00\x03\x02\x02\x02", want: Part{Reference8, 2, 2, 2}, ok: true},
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
			t.Fatal("the message is not a part")
		}
		return groupKey(&m, p)
	}
	otherPartKey := key(func(m *Message) { m.UDH[5], m.ID, m.Text, m.CarrierID = 2, "e2", "b", "x" })
	if otherPartKey != key(func(*Message) {}) || len(otherPartKey) != 32 || strings.Trim(otherPartKey, "0123456789abcdef") != "" {
		t.Errorf("key of another part of the message = %q, want the key of the first part, of 32 hex digits", otherPartKey)
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
		if key(change) == otherPartKey {
			t.Errorf("another %s does not change the key", name)
		}
	}
}
