package admin

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestReplayCommand replays events and the dead deliveries of an endpoint that works again. It selects the
// deliveries by number and by reason.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	var corrected atomic.Bool
	g, sink, _ := e2e.StartWithRelays(t, e2e.Embedded(), func(w http.ResponseWriter, _ e2e.SinkRequest, _ int) {
		if !corrected.Load() {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	acme := g.WithToken("acme-all-0123456")
	for i := range 3 {
		acme.PostInboundText(fmt.Sprint("m", i), "447800020001", fmt.Sprint("lost ", i))
	}
	acme.PostInboundText("m9", "447800019999", "lost too")
	acme.PostInboundText("m10", "4490", "nobody takes it")
	g.AwaitProcessed()
	relaytest.Eventually(t, "four deliveries are dead", func() (any, bool) { got := g.Deliveries("state=dead"); return got, len(got) == 4 })
	for query, want := range map[string]int{
		"number=%2B447800020001": 3, "number=447700900123": 4, "number=4478000200": 0, "reason=404": 4, "reason=410": 0,
		"number=447800019999&reason=answered": 1, "relay=v-post&state=dead&q=lost%201": 0, "relay=v-post&state=dead&q=lost%25201": 1,
	} {
		if got := g.Deliveries(query); len(got) != want {
			t.Errorf("%s: number of deliveries = %d, want %d", query, len(got), want)
		}
	}
	corrected.Store(true)
	deliveryID := g.Deliveries("number=447800019999")[0].ID
	for _, tc := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"replay deliveries", 1, "", "the replay was refused:\n  ids: Give ids or at least one filter."},
		{"replay deliveries --state lost", 1, "", "must be queued or retrying"},
		{"replay letters", 2, "", "penstock:"},
		{"replay deliveries " + deliveryID, 0, "1 delivery\n", ""},
		{"replay deliveries --number 447800020001 --reason 404 --last 1h", 0, "3 deliveries\n", ""},
		{"replay deliveries --relay v-post --from 2099-01-01T00:00:00Z", 0, "0 deliveries\n", ""},
		{"replay events --state unrouted --dry-run", 0, "1 event\n", ""},
		{"replay events --relay v-none", 1, "", "relay: There is no relay \"v-none\"."},
		{"replay events --state unrouted --relay v-post", 0, "0 events\n", ""},
		{"replay events --kind sms --state unrouted --source json --account 1 -q nobody", 0, "1 event\n", ""},
	} {
		got := g.RunCommand("", strings.Fields(tc.args)...)
		if got.Code != tc.code || got.Stdout != tc.stdout || !strings.Contains(got.Stderr, tc.stderr) {
			t.Errorf("%s: exit code = %d, want %d\nstdout: %s\nstderr: %s", tc.args, got.Code, tc.code, got.Stdout, got.Stderr)
		}
	}
	sink.Await(t, "/vmn-post", 6)
	sink.Await(t, "/vmn", 2)
	relaytest.Eventually(t, "every delivery is delivered", func() (any, bool) { got := g.Deliveries("state=delivered"); return got, len(got) == 4 })
	if got := g.Events("state=unrouted"); len(got) != 1 {
		t.Errorf("unrouted events = %d, want 1", len(got))
	}
}
