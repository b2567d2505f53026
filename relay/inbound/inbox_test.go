package inbound

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func inboxMessageOf(acct relay.AccountID, relayID, id string, seconds float64) InboxMessage {
	return InboxMessage{Account: acct, Relay: relayID, Labels: []string{"front"}, Message: Message{
		ID: id, From: "E3", To: "447", Text: "é\"<\x00", Data: []byte{0, 255}, Coding: sms.UCS2, ReceivedAt: dbtest.TimeAt(seconds),
	}}
}

func (r *rig) keep(t *testing.T, messages ...InboxMessage) {
	t.Helper()
	relaytest.NoError(t, r.Keep(t.Context(), messages))
}

// inbox returns a page of a relay's inbox as "id id", and the total.
func (r *rig) inbox(t *testing.T, acct relay.AccountID, relayID string, offset, limit int) (string, int) {
	t.Helper()
	messages, total, err := r.Read(t.Context(), acct, relayID, offset, limit)
	relaytest.NoError(t, err)
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.Message.ID)
	}
	return strings.Join(ids, " "), total
}

func inboxCases() cases {
	return cases{
		"returns messages, oldest first": inboxReads,
		"stores a message once":          inboxKeepsOnce,
		"hides acknowledged messages":    inboxForgets,
	}
}

func inboxReads(t *testing.T, s *rig) {
	s.keep(t, inboxMessageOf(1, "v1", "b", 2), inboxMessageOf(1, "v1", "a", 1), inboxMessageOf(1, "v2", "c", 1), inboxMessageOf(2, "v1", "d", 1))
	s.keep(t, inboxMessageOf(1, "v1", "e", 3))
	s.keep(t)
	for _, tc := range []struct {
		acct          relay.AccountID
		relay         string
		offset, limit int
		want          string
		total         int
	}{
		{1, "v1", 0, 50, "a b e", 3}, {1, "v1", 0, 2, "a b", 3}, {1, "v1", 2, 2, "e", 3}, {1, "v1", 9, 2, "", 3}, {1, "v1", 0, 0, "", 3},
		{1, "v2", 0, 50, "c", 1}, {2, "v1", 0, 50, "d", 1}, {2, "v2", 0, 50, "", 0},
	} {
		if got, total := s.inbox(t, tc.acct, tc.relay, tc.offset, tc.limit); got != tc.want || total != tc.total {
			t.Errorf("inbox of %d/%s from %d = %q of %d, want %q of %d", tc.acct, tc.relay, tc.offset, got, total, tc.want, tc.total)
		}
	}
	messages, _, err := s.Read(t.Context(), 1, "v1", 0, 1)
	relaytest.NoError(t, err)
	m := messages[0].Message
	relaytest.Equal(t, "Text", m.Text, "é\"<\x00")
	relaytest.Equal(t, "Data", string(m.Data), "\x00\xff")
	relaytest.Equal(t, "ReceivedAt", m.ReceivedAt, dbtest.TimeAt(1))
	relaytest.Equal(t, "the label", messages[0].Labels[0], "front")
}

func inboxKeepsOnce(t *testing.T, s *rig) {
	changed := inboxMessageOf(1, "v1", "a", 1)
	changed.Message.Text = "changed"
	s.keep(t, inboxMessageOf(1, "v1", "a", 1), changed)
	s.keep(t, changed)
	messages, total, err := s.Read(t.Context(), 1, "v1", 0, 50)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of messages", total, 1)
	relaytest.Equal(t, "the stored message", messages[0].Message, inboxMessageOf(1, "v1", "a", 1).Message)
}

func inboxForgets(t *testing.T, s *rig) {
	s.keep(t, inboxMessageOf(1, "v1", "a", 1), inboxMessageOf(1, "v1", "b", 2))
	relaytest.NoError(t, s.Acknowledge(t.Context(), 1, "v1", "a", time.Hour))
	for _, missing := range []InboxMessage{inboxMessageOf(1, "v1", "a", 1), inboxMessageOf(2, "v1", "b", 1), inboxMessageOf(1, "v2", "b", 1)} {
		err := s.Acknowledge(t.Context(), missing.Account, missing.Relay, missing.Message.ID, time.Hour)
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("error of Acknowledge for %+v = %v, want not found", missing, err)
		}
	}
	s.advance(59 * time.Minute)
	s.keep(t, inboxMessageOf(1, "v1", "a", 1)) // the journal record is processed again
	if got, total := s.inbox(t, 1, "v1", 0, 50); got != "b" || total != 1 {
		t.Errorf("inbox = %q of %d, want b of 1", got, total)
	}
	s.advance(time.Minute)
	s.keep(t, inboxMessageOf(1, "v1", "a", 1))
	if got, total := s.inbox(t, 1, "v1", 0, 50); got != "a b" || total != 2 {
		t.Errorf("inbox after the acknowledgement expired = %q of %d, want a b of 2", got, total)
	}
	relaytest.NoError(t, s.Acknowledge(t.Context(), 1, "v1", "a", time.Hour))
	s.advance(time.Hour)
	if n := s.sweep(t, "inbox"); n != 1 {
		t.Errorf("remaining rows = %d, want 1", n)
	}
}
