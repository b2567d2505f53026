package gateway_test

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestASignatureCoversTheWholeRequest(t *testing.T) {
	keys := relaytest.Must(gateway.NewKeys([]string{"new", "old"}))(t)
	oldKeys := relaytest.Must(gateway.NewKeys([]string{"old"}))(t)
	otherKeys := relaytest.Must(gateway.NewKeys([]string{"other"}))(t)
	signed := gateway.Request{Method: "POST", Target: "/internal/server?a=1", Node: "n1", Actor: "anna", Role: "operator", Time: time.Unix(1_790_000_000, 0), Body: []byte("{}")}
	for _, tc := range []struct {
		name   string
		keys   gateway.Keys
		change func(*gateway.Request)
		want   bool
	}{
		{"unchanged request", keys, func(*gateway.Request) {}, true},
		{"a verifier that has only the key of the signature", oldKeys, func(*gateway.Request) {}, true},
		{"another master key", otherKeys, func(*gateway.Request) {}, false},
		{"no master key", nil, func(*gateway.Request) {}, false},
		{"another method", keys, func(r *gateway.Request) { r.Method = "GET" }, false},
		{"another path", keys, func(r *gateway.Request) { r.Target = "/internal/events?a=1" }, false},
		{"another query", keys, func(r *gateway.Request) { r.Target = "/internal/server?a=2" }, false},
		{"another node", keys, func(r *gateway.Request) { r.Node = "n2" }, false},
		{"another user", keys, func(r *gateway.Request) { r.Actor = "carl" }, false},
		{"another role", keys, func(r *gateway.Request) { r.Role = "admin" }, false},
		{"another time", keys, func(r *gateway.Request) { r.Time = r.Time.Add(time.Second) }, false},
		{"another body", keys, func(r *gateway.Request) { r.Body = nil }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := signed
			tc.change(&request)
			relaytest.Equal(t, "whether the signature is valid", tc.keys.Verify(request, oldKeys.Sign(signed)), tc.want)
		})
	}
}
