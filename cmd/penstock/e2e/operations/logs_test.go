package operations

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// logLine returns the first line of a JSON log that has a message and attributes; nil if there is no such
// line.
func logLine(log, message string, attributes map[string]any) map[string]any {
	for line := range strings.Lines(log) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) != nil || m["msg"] != message {
			continue
		}
		original := maps.Clone(m)
		maps.Copy(m, attributes)
		if maps.Equal(m, original) {
			return original
		}
	}
	return nil
}

// TestEventsForOperatorsAreLogged runs the program, and checks that its log has a line for each event that
// concerns an operator.
func TestEventsForOperatorsAreLogged(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, func(w http.ResponseWriter, _ e2e.SinkRequest, _ int) { w.WriteHeader(http.StatusGone) })
	inventory := e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", (&e2e.Site{}).Mailbox())
	g := e2e.NewGateway(t, e2e.Embedded(), inventory, "PENSTOCK_LOG_FORMAT=json", "PENSTOCK_LOG_ACCESS=true")
	g.Spawn()
	acme := g.WithToken("acme-all-0123456")
	const id = "the-id-of-a-proxy-1"
	acme.With("X-Request-Id", id).Post("/webhooks/lpwan", `{"hello": "world"}`).Mentions(t, 200)
	acme.PostInboundText("dead-1", "447800015555", "nobody takes it")
	g.WithToken("a-wrong-token-0123").With("X-Request-Id", id).Get("/iot/devices").Mentions(t, 401)
	g.Admin().Put("/admin/inventory?prune=true", inventory).Mentions(t, 200)
	g.Admin().Put("/admin/inventory", "accounts: 7").Mentions(t, 422)
	relaytest.Eventually(t, "the quarantined event", func() (any, bool) { return nil, len(g.Events("state=quarantined")) == 1 })
	g.AwaitDelivery("g-longer", "dead")
	g.Admin().Post("/admin/events/replay", `{"state": "quarantined"}`).Mentions(t, 200)
	g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Mentions(t, 200)
	for _, tc := range []struct {
		name, message string
		attributes    map[string]any
	}{
		{"listening", "penstock is listening", map[string]any{"listen": g.URL()}},
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
		{"a refused request", "request", map[string]any{"request_id": id, "path": "/iot/devices", "status": 401.0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			relaytest.Eventually(t, "the log has the line", func() (any, bool) {
				return g.Logs.Tail(40), logLine(g.Logs.String(), tc.message, tc.attributes) != nil
			})
		})
	}
	if strings.Contains(g.Logs.String(), "a-wrong-token") || strings.Contains(g.Logs.String(), "acme-all-0123456") {
		t.Error("the log contains a token")
	}
}
