package admin

import (
	"context"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// A refused server may be an old primary that other gateways no longer use. Only an explicit request
// accepts it.
func TestRecoverAcceptsAServerOnlyOnRequest(t *testing.T) {
	o := newOperatorAPI(t)
	accepted, conflict := 0, error(nil)
	o.surface.AcceptServer = func(context.Context) (string, error) {
		accepted++
		return "h:5432", conflict
	}
	o.surface.Recover = func(context.Context) (RecoveryResult, error) {
		return RecoveryResult{}, relay.Errorf(relay.KindConflict, "processing has not stopped")
	}
	for _, step := range []struct {
		name, body string
		conflict   error
		want       string
		accepted   int
	}{
		{"without a body", "", nil, `409 {"message":"processing has not stopped"}`, 0},
		{"an empty object", "{}", nil, `409 {"message":"processing has not stopped"}`, 0},
		{"false", `{"accept_server":false}`, nil, `409 {"message":"processing has not stopped"}`, 0},
		{"an unknown field", `{"accept":true}`, nil, `422 {"errors":{"accept":["This field is unknown."]}`, 0},
		{"true", `{"accept_server":true}`, nil, `200 {"count":0,"unknown":0,"server":"h:5432"`, 1},
		{"true while another host can be used", `{"accept_server":true}`, relay.Errorf(relay.KindConflict, "another host can be used"), `409 {"message":"another host can be used"}`, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			accepted, conflict = 0, step.conflict
			if got := o.call("POST /admin/recover", step.body); len(got) < len(step.want) || got[:len(step.want)] != step.want {
				t.Errorf("answer = %s, want the prefix %s", got, step.want)
			}
			relaytest.Equal(t, "the number of accepted servers", accepted, step.accepted)
		})
	}
}
