package cache

import (
	"testing"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestBreakersAreStored(t *testing.T) {
	onEveryServer(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Breakers()
		relaytest.Equal(t, "whether an empty Redis has lost the breakers", relaytest.Must(s.Lost(t.Context()))(t), true)
		relaytest.NoError(t, s.Restored(t.Context()))
		relaytest.Equal(t, "whether the breakers are lost after Restored", relaytest.Must(s.Lost(t.Context()))(t), false)
		second := outbox.Breaker{Endpoint: "f", Account: 2, OpenedAt: timeAt(9)}
		first := outbox.Breaker{Endpoint: "e", Account: 1, Relay: "v1", Target: "http://h/", Reason: "answered 500", OpenedAt: timeAt(1), ProbeAt: timeAt(6)}
		changed := first
		changed.Probes, changed.ProbeAt = 1, timeAt(16)
		for _, breaker := range []outbox.Breaker{second, first, changed} {
			if err := s.Open(t.Context(), breaker); err != nil {
				t.Fatal(err)
			}
		}
		relaytest.Equal(t, "the open breakers", relaytest.Must(s.List(t.Context()))(t), []outbox.Breaker{changed, second})
		if err := s.Close(t.Context(), "e"); err != nil {
			t.Fatal(err)
		}
		relaytest.Equal(t, "the open breakers after Close", relaytest.Must(s.List(t.Context()))(t), []outbox.Breaker{second})
	})
}
