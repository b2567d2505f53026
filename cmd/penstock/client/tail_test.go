package client

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// TestTailPrintsEachStateOnce prints lists of events from before, during and after an outage of the
// database.
func TestTailPrintsEachStateOnce(t *testing.T) {
	var printed strings.Builder
	f := follower{Environment: Environment{Context: t.Context(), Stdout: &printed}, states: map[string]string{}}
	list := func(states ...string) {
		var events []tailEvent
		for i, state := range states {
			receivedAt := time.Date(2026, 11, 27, 1, 0, len(states)-i, 0, time.UTC)
			events = append(events, tailEvent{ID: "n1-u" + string(rune('0'+len(states)-i)), ReceivedAt: receivedAt.Format(time.RFC3339Nano), Kind: "uplink", Source: "json", State: state})
		}
		f.print(events)
	}
	list("done")
	list("unknown", "unknown")
	list("unknown", "unknown")
	list("pending", "done")
	list("done", "done")
	var got []string
	for line := range strings.Lines(printed.String()) {
		fields := strings.Fields(line)
		got = append(got, fields[6]+" "+fields[2])
	}
	relaytest.Equal(t, "lines", got, []string{"n1-u1 done", "n1-u2 unknown", "n1-u2 pending", "n1-u2 done"})
}
