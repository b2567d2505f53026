package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
)

func keptOf(acct account.ID, relayID, id string, seconds float64) inbound.Kept {
	return inbound.Kept{Account: acct, Relay: relayID, Labels: []string{"front"}, Message: inbound.Message{
		ID: id, From: "E3", To: "447", Text: "é\"<\x00", Data: []byte{0, 255}, Coding: inbound.Unicode, ReceivedAt: at(seconds),
	}}
}

func keep(t *testing.T, s *Inbox, all ...inbound.Kept) {
	t.Helper()
	if err := s.Keep(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// held is what the inbox of a relay holds, as "id id/total".
func held(t *testing.T, s *Inbox, acct account.ID, relayID string, offset, limit int) (string, int) {
	t.Helper()
	found, total, err := s.Read(t.Context(), acct, relayID, offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range found {
		ids = append(ids, k.Message.ID)
	}
	return strings.Join(ids, " "), total
}

func TestInbox(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		for name, test := range map[string]func(*testing.T, *Inbox){
			"gives back what was kept, oldest first": inboxReads,
			"keeps a message once":                   inboxKeepsOnce,
			"forgets what was acknowledged":          inboxForgets,
		} {
			t.Run(name, func(t *testing.T) { test(t, open(t).Inbox()) })
		}
	})
}

func inboxReads(t *testing.T, s *Inbox) {
	keep(t, s, keptOf(1, "v1", "b", 2), keptOf(1, "v1", "a", 1), keptOf(1, "v2", "c", 1), keptOf(2, "v1", "d", 1))
	keep(t, s, keptOf(1, "v1", "e", 3))
	for _, tc := range []struct {
		acct          account.ID
		relay         string
		offset, limit int
		want          string
		total         int
	}{
		{1, "v1", 0, 50, "a b e", 3}, {1, "v1", 0, 2, "a b", 3}, {1, "v1", 2, 2, "e", 3}, {1, "v1", 9, 2, "", 3},
		{1, "v2", 0, 50, "c", 1}, {2, "v1", 0, 50, "d", 1}, {2, "v2", 0, 50, "", 0},
	} {
		if got, total := held(t, s, tc.acct, tc.relay, tc.offset, tc.limit); got != tc.want || total != tc.total {
			t.Errorf("%d/%s from %d: %q of %d, want %q of %d", tc.acct, tc.relay, tc.offset, got, total, tc.want, tc.total)
		}
	}
	found, _, err := s.Read(t.Context(), 1, "v1", 0, 1)
	m := found[0].Message
	if err != nil || m.Text != "é\"<\x00" || string(m.Data) != "\x00\xff" || !m.ReceivedAt.Equal(at(1)) || found[0].Labels[0] != "front" {
		t.Errorf("got %+v, %v", found[0], err)
	}
}

func inboxKeepsOnce(t *testing.T, s *Inbox) {
	again := keptOf(1, "v1", "a", 1)
	again.Message.Text = "changed"
	keep(t, s, keptOf(1, "v1", "a", 1), again)
	keep(t, s, again)
	found, total, err := s.Read(t.Context(), 1, "v1", 0, 50)
	if err != nil || total != 1 || found[0].Message.Text == "changed" {
		t.Errorf("got %+v of %d, %v", found, total, err)
	}
}

func inboxForgets(t *testing.T, s *Inbox) {
	keep(t, s, keptOf(1, "v1", "a", 1), keptOf(1, "v1", "b", 2))
	if err := s.Acknowledge(t.Context(), 1, "v1", "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []inbound.Kept{keptOf(1, "v1", "a", 1), keptOf(2, "v1", "b", 1), keptOf(1, "v2", "b", 1)} {
		err := s.Acknowledge(t.Context(), wrong.Account, wrong.Relay, wrong.Message.ID, time.Hour)
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	keep(t, s, keptOf(1, "v1", "a", 1)) // its journal record, processed again
	if got, total := held(t, s, 1, "v1", 0, 50); got != "b" || total != 1 {
		t.Errorf("got %q of %d", got, total)
	}
	ttl, err := s.db.rdb.TTL(t.Context(), keyInboxDone(1, "v1", "a")).Result()
	if err != nil || ttl <= 50*time.Minute || ttl > time.Hour {
		t.Errorf("remembered for %v, %v", ttl, err)
	}
}
