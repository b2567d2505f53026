package admin

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

// signAsPeer signs a request as the gateway n2 does for a request of the operator anna.
func signAsPeer(keys gateway.Keys, r *http.Request, body string, t time.Time) {
	signed := gateway.Request{Method: r.Method, Target: r.RequestURI, Node: "n2", Actor: "anna", Role: "operator", Time: t, Body: []byte(body)}
	for name, value := range map[string]string{
		headerNode: signed.Node, headerActor: signed.Actor, headerRole: signed.Role, headerTime: strconv.FormatInt(t.Unix(), 10),
		headerSignature: hex.EncodeToString(keys.Sign(signed)),
	} {
		r.Header.Set(name, value)
	}
}

func TestInternalRoutesRequireASignature(t *testing.T) {
	o := newOperatorAPI(t)
	keys := relaytest.Must(gateway.NewKeys([]string{"the master key"}))(t)
	otherKeys := relaytest.Must(gateway.NewKeys([]string{"another key"}))(t)
	o.surface.Peers = NewPeers("n1", keys, nil, func() time.Time { return o.now })
	o.surface.NewerServer = func(peerServer db.Server) db.Server { return peerServer }
	o.accept(event.SMS, `{"text":"one"}`)
	root := o.signIn(user.Admin, 0)
	const replay, server = `{"kind":"sms"}`, `{"host":"h:5432"}`
	for _, tc := range []struct {
		name, line, body string
		keys             gateway.Keys
		clockError       time.Duration
		want             string
	}{
		{"a list", "GET /internal/events?kind=sms", "", keys, 0, `200 {"data":[{"id":"n1-`},
		{"a server", "POST /internal/server", server, keys, 0, `200 {"host":"h:5432"`},
		{"a replay", "POST /internal/events/replay", replay, keys, 0, `200 {"count":1,`},
		{"another key", "GET /internal/events", "", otherKeys, 0, `401 `},
		{"another key for a server", "POST /internal/server", server, otherKeys, 0, `401 `},
		{"a request from an hour ago", "GET /internal/events", "", keys, -time.Hour, `401 {"message":"The clocks of the two gateways differ by 1h0m0s."}`},
		{"a clock ten minutes ahead", "GET /internal/events", "", keys, 10 * time.Minute, `401 {"message":"The clocks`},
		{"the admin API", "GET /admin/users", "", keys, 0, `401 `},
		{"the admin API with the same path", "GET /admin/events", "", keys, 0, `401 `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(tc.line, tc.body)
			signAsPeer(tc.keys, r, tc.body, o.now.Add(time.Second).Add(tc.clockError))
			status, body := o.do(r)
			if got := strconv.Itoa(status) + " " + body; !strings.HasPrefix(got, tc.want) {
				t.Errorf("answer = %s, want the prefix %s", got, tc.want)
			}
		})
	}
	if status, body := root.send("GET /internal/events", ""); status != http.StatusUnauthorized {
		t.Errorf("answer to an admin session at an internal route = %d %s, want 401", status, body)
	}
	if got := o.call("POST /internal/server", server); !strings.HasPrefix(got, "401 ") {
		t.Errorf("answer to the admin token at an internal route = %s, want 401", got)
	}
	recorded := o.audit("limit=100") // exchanges of servers are not recorded
	if len(recorded) != 1 || recorded[0].Operation != "replayEvents" || recorded[0].Actor != "anna" || recorded[0].Role != "operator" {
		t.Errorf("audit log = %v, want the replay by the operator anna", recorded)
	}
}

func TestOnlyAGatewayThatIsAwayIsForgotten(t *testing.T) {
	o := newOperatorAPI(t)
	registry := gateway.NewStore(o.db.DB)
	o.surface.Peers = NewPeers("n1", gateway.Keys{}, registry, func() time.Time { return o.now })
	relaytest.NoError(t, registry.Heartbeat(t.Context(), gateway.Gateway{Node: "n2", URL: "http://n2"}))
	registered := relaytest.Must(registry.Gateways(t.Context()))(t)
	o.now = registered[0].SeenAt.Add(gateway.AwayAfter)
	answertest.HasPrefix(t, "the answer while the gateway runs", o.call("DELETE /admin/gateways/n2", ""), `409 {"message":"Gateway n2 sent a heartbeat at `)
	o.now = o.now.Add(time.Second)
	answertest.HasPrefix(t, "the answer while the gateway is away", o.call("DELETE /admin/gateways/n2", ""), "204")
	relaytest.Equal(t, "the gateways", relaytest.Must(registry.Gateways(t.Context()))(t), nil)
}
