package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// logLine returns the first line of a JSON log that has a message and some attributes;
// nil if there is none.
func logLine(log, message string, attributes map[string]any) map[string]any {
	for line := range strings.Lines(log) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) != nil || m["msg"] != message {
			continue
		}
		seen := maps.Clone(m)
		maps.Copy(m, attributes)
		if maps.Equal(m, seen) {
			return seen
		}
	}
	return nil
}

// TestLogHasALineForWhatAnOperatorMustKnow runs the program as a process.
func TestLogHasALineForWhatAnOperatorMustKnow(t *testing.T) {
	t.Parallel()
	k := newSink(t, func(w http.ResponseWriter, _ hit, _ int) { w.WriteHeader(http.StatusGone) })
	inventory := fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", (&site{}).mailbox())
	g := newGateway(t, &site{name: "embedded"}, inventory, "PENSTOCK_LOG_FORMAT=json", "PENSTOCK_LOG_ACCESS=true")
	g.spawn()
	acme := g.as("acme-all-0123456")
	const id = "the-id-of-a-proxy-1"
	acme.with("X-Request-Id", id).post("/webhooks/lpwan", `{"hello": "world"}`).mentions(t, 200)
	acme.text("dead-1", "447800015555", "nobody takes it")
	g.as("a-wrong-token-0123").with("X-Request-Id", id).get("/iot/devices").mentions(t, 401)
	g.admin().put("/admin/inventory?prune=true", inventory).mentions(t, 200)
	g.admin().put("/admin/inventory", "accounts: 7").mentions(t, 422)
	eventually(t, "the quarantined event", func() (any, bool) { return nil, len(g.events("state=quarantined")) == 1 })
	g.reach("g-longer", "dead")
	g.admin().post("/admin/events/replay", `{"state": "quarantined"}`).mentions(t, 200)
	g.admin().post("/admin/deliveries/replay", `{"state": "dead"}`).mentions(t, 200)
	for _, tc := range []struct {
		name, message string
		attributes    map[string]any
	}{
		{"listening", "penstock is listening", map[string]any{"listen": g.url()}},
		{"ready", "penstock is ready", nil},
		{"a quarantined event", "event quarantined", map[string]any{"level": "WARN", "kind": "uplink"}},
		{"a dead delivery", "delivery dead: it is not attempted again", map[string]any{"level": "WARN", "kind": "relay"}},
		{"a refused sign-in", "sign-in refused: wrong credential", map[string]any{"surface": "iot", "request_id": id, "address": "127.0.0.1"}},
		{"an apply", "inventory applied", map[string]any{"document": "default", "address": "127.0.0.1"}},
		{"a prune", "inventory pruned", map[string]any{"count": 0.0}},
		{"a refused apply", "inventory refused", map[string]any{"level": "WARN"}},
		{"a replay of events", "events replayed", map[string]any{"count": 1.0, "selection": `{"state":"quarantined"}`}},
		{"a replay of deliveries", "deliveries replayed", map[string]any{"selection": `{"state":"dead"}`}},
		{"a request", "request", map[string]any{"request_id": id, "path": "/webhooks/lpwan", "status": 200.0, "method": "POST"}},
		{"a request that is refused", "request", map[string]any{"request_id": id, "path": "/iot/devices", "status": 401.0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eventually(t, "its line", func() (any, bool) {
				return g.logs.tail(40), logLine(g.logs.String(), tc.message, tc.attributes) != nil
			})
		})
	}
	if strings.Contains(g.logs.String(), "a-wrong-token") || strings.Contains(g.logs.String(), "acme-all-0123456") {
		t.Error("the log holds a token")
	}
}
