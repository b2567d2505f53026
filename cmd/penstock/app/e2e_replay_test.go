package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// An endpoint that was gone for a while: its messages are dead, are found by
// number and reason, and are replayed by the command.
func TestTheReplayCommand(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	g, k, _ := relaying(t, &site{name: "embedded"}, func(w http.ResponseWriter, _ hit, _ int) {
		if !back.Load() {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	acme := g.as("acme-all-0123456")
	for i := range 3 {
		acme.text(fmt.Sprint("m", i), "447800020001", fmt.Sprint("lost ", i))
	}
	acme.text("m9", "447800019999", "lost too")
	acme.text("m10", "4490", "nobody takes it")
	g.settled()
	eventually(t, "four are dead", func() (any, bool) { got := g.deliveries("state=dead"); return got, len(got) == 4 })
	for query, want := range map[string]int{
		"number=%2B447800020001": 3, "number=447700900123": 4, "number=4478000200": 0, "reason=404": 4, "reason=410": 0,
		"number=447800019999&reason=answered": 1, "relay=v-post&state=dead&q=lost%201": 0, "relay=v-post&state=dead&q=lost%25201": 1,
	} {
		if got := g.deliveries(query); len(got) != want {
			t.Errorf("%s: %d deliveries, want %d", query, len(got), want)
		}
	}
	back.Store(true)
	one := g.deliveries("number=447800019999")[0].ID
	ask := []string{"--server", g.url(), "--admin-token", adminToken}
	for _, tc := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"replay deliveries", 1, "", "the replay was refused:\n  ids: name ids or at least one filter"},
		{"replay deliveries --state lost", 1, "", "want one of queued"},
		{"replay letters", 2, "", "penstock:"},
		{"replay deliveries " + one, 0, "1 deliveries\n", ""},
		{"replay deliveries --number 447800020001 --reason 404 --last 1h", 0, "3 deliveries\n", ""},
		{"replay deliveries --relay v-post --from 2099-01-01T00:00:00Z", 0, "0 deliveries\n", ""},
		{"replay events --state unrouted --dry-run", 0, "1 events\n", ""},
		{"replay events --kind sms --state unrouted --source json --account 1 -q nobody", 0, "1 events\n", ""},
	} {
		got := command(nil, "", append(strings.Fields(tc.args), ask...)...)
		if got.code != tc.code || got.out != tc.out || !strings.Contains(got.err, tc.err) {
			t.Errorf("%s: exit %d, want %d\nout: %s\nerr: %s", tc.args, got.code, tc.code, got.out, got.err)
		}
	}
	k.await(t, "/vmn-post", 6)
	k.await(t, "/vmn", 2)
	eventually(t, "all have arrived", func() (any, bool) { got := g.deliveries("state=delivered"); return got, len(got) == 4 })
	if got := g.events("state=unrouted"); len(got) != 1 {
		t.Errorf("%d events are unrouted", len(got))
	}
}
