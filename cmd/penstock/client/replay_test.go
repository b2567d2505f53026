package client

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// TestReplayRefusesAnUnclearBeginning asks no gateway: the flags are refused before.
func TestReplayRefusesAnUnclearBeginning(t *testing.T) {
	for _, tc := range []struct {
		name, from string
		last       time.Duration
		want       string
	}{
		{"two beginnings", "2026-11-01T00:00:00Z", time.Hour, "--last and --from exclude each other"},
		{"a beginning in the future", "", -time.Hour, "--last must be positive, not -1h0m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var replay replayDeliveriesCommand
			replay.From, replay.Last = tc.from, tc.last
			got := ""
			if err := replay.Run(Environment{Context: t.Context()}); err != nil {
				got = err.Error()
			}
			relaytest.Equal(t, "the error", got, tc.want)
		})
	}
}
