package app

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	registry "github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// After a restore, gateways discard their caches, ids are not reused, and messages that were due
// before the halt are not sent.
func TestRecordsArePreparedAfterARestore(t *testing.T) {
	ctx, r := t.Context(), newRecords(dbtest.Open(t, db.Options{}))
	now := r.DB.Now()
	relaytest.NoError(t, r.Credit.Open(ctx, 1, 10, now))
	ref := relaytest.Must(r.Messages.Reserve(ctx, 1))(t)
	message1 := message.Message{
		ID: ref, Account: 1, Originator: "Shop", Destination: "447700900123", Coding: message.GSM, ReceivedAt: now, ScheduledFor: now,
		Parts: []message.Part{{Data: []byte("hi"), Text: "hi", State: message.Pending, ScheduledAt: now, ChangedAt: now}},
	}
	relaytest.Must(r.Messages.Save(ctx, message.OrderRecords{Account: 1, Messages: []message.Message{message1}, Now: now}))(t)
	checkRestore := func(halt registry.Halt, want int) {
		t.Helper()
		version := relaytest.Must(db.Version(ctx, r.DB, "accounts"))(t)
		relaytest.Equal(t, "parts set to unknown", relaytest.Must(r.afterRestore(ctx, halt))(t), want)
		if relaytest.Must(db.Version(ctx, r.DB, "accounts"))(t) == version {
			t.Error("the caches of the gateways stay valid")
		}
	}
	checkRestore(registry.Halt{}, 0)
	checkRestore(registry.Halt{Node: "n1", Since: now.Add(time.Minute)}, 1)
	nextRef := relaytest.Must(newRecords(r.DB).Messages.Reserve(ctx, 1))(t)
	if nextRef < ref+1_000_000 {
		t.Errorf("id after %d = %d, want at least 1,000,000 more", ref, nextRef)
	}
}
