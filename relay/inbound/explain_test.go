package inbound

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock/penstock/relay/outbox"
)

func TestExplainShowsRequestsAsTheyWouldGoOut(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://10.0.0.1/?m=%m"), vmn("v2", "447860000002", Email, "a@example.com"))
	s := w.service(t)
	s.deps.Preview = func(_ context.Context, d outbox.Delivery) (outbox.Request, string, error) {
		req := *d.Request
		req.Headers = map[string]string{"X-Signed": "yes"}
		return req, "a private address", nil
	}
	e, err := s.Explain(t.Context(), numbered("e1", "447860000001"))
	if err != nil || len(e.Outgoing) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	if o := e.Outgoing[0]; o.ID != e.Deliveries[0].ID || o.Request.Headers["X-Signed"] != "yes" || o.Refused != "a private address" {
		t.Errorf("%+v", o)
	}
	if e.Deliveries[0].Request.Headers["X-Signed"] != "" {
		t.Error("the decision was changed")
	}
	s.deps.Preview = func(context.Context, outbox.Delivery) (outbox.Request, string, error) {
		return outbox.Request{}, "", errDown
	}
	if e, err = s.Explain(t.Context(), numbered("e2", "447860000002")); err != nil || e.Outgoing[0].Mail.To != "a@example.com" {
		t.Errorf("an e-mail needs no preview: %+v, %v", e, err)
	}
	if _, err := s.Explain(t.Context(), numbered("e3", "447860000001")); !errors.Is(err, errDown) {
		t.Errorf("an error of the preview: %v", err)
	}
}
