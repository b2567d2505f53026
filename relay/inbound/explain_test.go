package inbound

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestExplainReturnsTheOutgoingRequests(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://10.0.0.1/?m=%m"), vmn("v2", "447860000002", Email, "a@example.com"))
	s := w.service()
	s.deps.Preview = func(_ context.Context, d outbox.Delivery) (outbox.Request, string, error) {
		req := *d.Request
		req.Headers = map[string]string{"X-Signed": "yes"}
		return req, "a private address", nil
	}
	e, err := s.Explain(t.Context(), numbered("e1", "447860000001"))
	relaytest.NoError(t, err)
	if len(e.Outgoing) != 1 {
		t.Fatalf("outgoing requests = %d, want 1", len(e.Outgoing))
	}
	o := e.Outgoing[0]
	relaytest.Equal(t, "id, signature and refusal of the request", []string{o.DeliveryID, o.Headers["X-Signed"], o.Refused},
		[]string{e.Deliveries[0].ID, "yes", "a private address"})
	if e.Deliveries[0].Request.Headers["X-Signed"] != "" {
		t.Error("the preview changed the delivery of the decision")
	}
	s.deps.Preview = func(context.Context, outbox.Delivery) (outbox.Request, string, error) {
		return outbox.Request{}, "", errDown
	}
	e, err = s.Explain(t.Context(), numbered("e2", "447860000002"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the address of an e-mail, which needs no preview", e.Outgoing[0].Mail.To, "a@example.com")
	if _, err := s.Explain(t.Context(), numbered("e3", "447860000001")); !errors.Is(err, errDown) {
		t.Errorf("error of Explain = %v, want %v", err, errDown)
	}
}

func TestATrialIgnoresOtherRelays(t *testing.T) {
	w := newWorld(t, vmn("v1", "4478", Inactive))
	s := w.service()
	trialRelay := Relay{ID: "g1", Account: 1, Kind: Geographic, Number: "4478", Action: Action{Name: HTTPGet, Parameters: []string{"https://example.com/in?m=%m&o=%o"}}}
	e, err := s.Try(t.Context(), trialRelay, Trial{From: "Shop", Text: "h\u0457"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the URL", e.Outgoing[0].URL, "https://example.com/in?m=h%D1%97&o=Shop")
	relaytest.Equal(t, "the coding", int(e.Message.Coding), 16)
	relaytest.Equal(t, "the saved deliveries without Send", w.rows("delivery"), 0)
	_, err = s.Try(t.Context(), trialRelay, Trial{From: "Shop", Text: "hi", Send: true})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the saved and dispatched deliveries with Send", []int{w.rows("delivery"), len(w.sent)}, []int{1, 1})
	invalid := trialRelay
	invalid.Action.Parameters = []string{"nonsense"}
	e, err = s.Try(t.Context(), invalid, Trial{From: "Shop", Text: "hi", Send: true})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state with an invalid relay", string(e.State), "quarantined")
}
