package redisstore

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

func TestDeliveriesAreFoundByTheirMessage(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Outbox()
		about := func(d outbox.Delivery, message string) outbox.Delivery { d.MessageID = message; return d }
		create(t, s, at(30), about(created(post("a"), 2), "m1"), about(of(2, created(post("b"), 1)), "m1"), about(post("c"), "m2"))
		if _, err := s.Create(t.Context(), []outbox.Delivery{about(created(post("a"), 2), "m1")}, at(30)); err != nil { // once more
			t.Fatal(err)
		}
		if err := s.db.rdb.Del(t.Context(), keyDelivery(1, "c")).Err(); err != nil {
			t.Fatal(err)
		}
		for message, want := range map[string][]string{"m1": {"b", "a"}, "m2": nil, "m3": nil} {
			ds, err := s.OfMessage(t.Context(), message)
			var got []string
			for _, d := range ds {
				got = append(got, d.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, error %v", message, got, err)
			}
		}
		ttl, err := s.db.rdb.TTL(t.Context(), keyOutboxMessage("m1")).Result()
		if err != nil || ttl <= 0 || ttl > endedRetention {
			t.Errorf("kept for %v, error %v", ttl, err)
		}
	})
}

func TestHoldersAndWholesAreLookedUpWithoutAChange(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		db := open(t)
		if got, err := db.Claims().Holder(t.Context(), "k"); got != "" || err != nil {
			t.Errorf("nobody's: %q %v", got, err)
		}
		if _, err := db.Claims().Claim(t.Context(), []inbound.Claim{{Key: "k", Holder: "m1"}}, endedRetention); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Claims().Holder(t.Context(), "k"); got != "m1" || err != nil {
			t.Errorf("m1's: %q %v", got, err)
		}
		if got, err := db.Parts().Whole(t.Context(), "00ff", "p1"); got != "" || err != nil {
			t.Errorf("a part that nobody knows: %q %v", got, err)
		}
	})
}
