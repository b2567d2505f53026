package inbound

import (
	"errors"
	"slices"
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/event"
)

func TestTraceMessage(t *testing.T) {
	w := newWorld(geo("g1", "4478", HTTPGet, "http://h/?m=%m"))
	s := w.service(t)
	first, again := numbered("e1", "447860000001"), numbered("e2", "447860000001")
	first.CarrierID, again.CarrierID = "c1", "c1"
	receive(t, s, first, again)
	saved := len(w.saved)

	f, err := s.TraceMessage(t.Context(), first)
	if err != nil || f.DuplicateOf != "" || f.Part != nil || f.MessageID != "e1" || f.Decision.Matched.ID != "g1" {
		t.Errorf("the first: %+v %v", f, err)
	}
	if f, err = s.TraceMessage(t.Context(), again); err != nil || f.DuplicateOf != "e1" || f.Decision.State != "" {
		t.Errorf("the same again: %+v %v", f, err)
	}
	part := piece("p1", "447860000001", 1, 2, "a")
	if f, err = s.TraceMessage(t.Context(), part); err != nil || f.Part == nil || f.Part.Total != 2 || f.MessageID != "" {
		t.Errorf("a part that waits: %+v %v", f, err)
	}
	receive(t, s, part, piece("p2", "447860000001", 2, 2, "b"))
	if f, err = s.TraceMessage(t.Context(), part); err != nil || f.Part == nil || f.MessageID != "J" {
		t.Errorf("a part that was joined: %+v %v", f, err)
	}
	if len(w.saved) != saved+1 {
		t.Errorf("%d deliveries after %d", len(w.saved), saved)
	}
}

func TestExplainChangesNothing(t *testing.T) {
	w := newWorld(geo("g1", "4478", HTTPGet, "http://h/?m=%m&i=%i"))
	s := w.service(t)
	e, err := s.Explain(t.Context(), Message{From: "1", To: "447860000001", Text: "hi", Coding: sms.GSM})
	if err != nil || e.State != event.Done || e.Part != nil || e.Deliveries[0].Request.URL != "http://h/?m=hi&i=example" || e.Message.ReceivedAt.IsZero() {
		t.Errorf("%+v %v", e, err)
	}
	e, err = s.Explain(t.Context(), piece("", "447860000001", 2, 3, "two"))
	if err != nil || e.Part == nil || e.Part.Number != 2 || !slices.Equal(e.Part.Missing, []int{1, 3}) || e.Message.Text != "[…]two[…]" || e.Message.Status != Concatenated {
		t.Errorf("a part: %+v %v", e, err)
	}
	if len(w.saved)+len(w.sent)+len(w.holders) != 0 || len(w.heap.parts) != 0 {
		t.Error("something was kept")
	}
}

func TestTraceMessageAndExplainReportAFailedBackEnd(t *testing.T) {
	m := numbered("e1", "447860000001")
	m.CarrierID = "c1"
	for _, broken := range []string{"holder", "version", "whole"} {
		w := newWorld()
		w.down = broken
		about := m
		if broken == "whole" {
			about = piece("p1", "447860000001", 1, 2, "a")
		}
		if _, err := w.service(t).TraceMessage(t.Context(), about); !errors.Is(err, errDown) {
			t.Errorf("follow, %s: %v", broken, err)
		}
	}
	w := newWorld()
	w.down = "version"
	if _, err := w.service(t).Explain(t.Context(), m); !errors.Is(err, errDown) {
		t.Errorf("explain: %v", err)
	}
}
