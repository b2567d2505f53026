package cache

import (
	"testing"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestBreakersAreKeptForEveryGateway(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Breakers()
		relaytest.Equal(t, "lost at first", relaytest.Must(s.Lost(t.Context()))(t), true)
		relaytest.NoError(t, s.Restored(t.Context()))
		relaytest.Equal(t, "lost once restored", relaytest.Must(s.Lost(t.Context()))(t), false)
		later := outbox.Breaker{Endpoint: "f", Account: 2, OpenedAt: at(9)}
		b := outbox.Breaker{Endpoint: "e", Account: 1, Relay: "v1", Target: "http://h/", Reason: "answered 500", OpenedAt: at(1), ProbeAt: at(6)}
		again := b
		again.Probes, again.ProbeAt = 1, at(16)
		for _, step := range []outbox.Breaker{later, b, again} {
			if err := s.Open(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		relaytest.Equal(t, "result of List", relaytest.Must(s.List(t.Context()))(t), []outbox.Breaker{again, later})
		if err := s.Close(t.Context(), "e"); err != nil {
			t.Fatal(err)
		}
		relaytest.Equal(t, "result of List", relaytest.Must(s.List(t.Context()))(t), []outbox.Breaker{later})
	})
}
