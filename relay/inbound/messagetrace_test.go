package inbound

import (
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTraceMessage(t *testing.T) {
	w := newWorld(t, geo("g1", "4478", HTTPGet, "http://h/?m=%m"))
	s := w.service()
	first, again := numbered("e1", "447860000001"), numbered("e2", "447860000001")
	first.CarrierID, again.CarrierID = "c1", "c1"
	receive(t, s, first, again)
	saved := w.rows("delivery")

	f, err := s.TraceMessage(t.Context(), first)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "original and id of the first message", []string{f.DuplicateOf, f.MessageID}, []string{"", "e1"})
	relaytest.Equal(t, "the part of the first message", f.Part, nil)
	relaytest.Equal(t, "the relay of the first message", f.Decision.Matched.ID, "g1")

	f, err = s.TraceMessage(t.Context(), again)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the original of a duplicate", f.DuplicateOf, "e1")
	relaytest.Equal(t, "the state of a duplicate", f.Decision.State, "")

	part := piece("p1", "447860000001", 1, 2, "a")
	f, err = s.TraceMessage(t.Context(), part)
	relaytest.NoError(t, err)
	if f.Part == nil {
		t.Fatal("a part that waits is not traced as a part")
	}
	relaytest.Equal(t, "the number of parts of the message", f.Part.Total, 2)
	relaytest.Equal(t, "the message of a part that waits", f.MessageID, "")

	receive(t, s, part, piece("p2", "447860000001", 2, 2, "b"))
	f, err = s.TraceMessage(t.Context(), part)
	relaytest.NoError(t, err)
	if f.Part == nil {
		t.Error("a part that was joined is not traced as a part")
	}
	relaytest.Equal(t, "the message of a part that was joined", f.MessageID, "p1")
	relaytest.Equal(t, "the number of deliveries", w.rows("delivery"), saved+1)
}

func TestExplainChangesNothing(t *testing.T) {
	w := newWorld(t, geo("g1", "4478", HTTPGet, "http://h/?m=%m&i=%i"))
	s := w.service()
	e, err := s.Explain(t.Context(), Message{From: "1", To: "447860000001", Text: "hi", Coding: sms.GSM})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state", e.State, event.Done)
	relaytest.Equal(t, "the part", e.Part, nil)
	relaytest.Equal(t, "the URL", e.Deliveries[0].Request.URL, "http://h/?m=hi&i=example")
	if e.Message.ReceivedAt.IsZero() {
		t.Error("the message has no time of receipt")
	}
	e, err = s.Explain(t.Context(), piece("", "447860000001", 2, 3, "two"))
	relaytest.NoError(t, err)
	if e.Part == nil {
		t.Fatal("a part is not explained as a part")
	}
	relaytest.Equal(t, "the number of the part", e.Part.Number, 2)
	relaytest.Equal(t, "the missing parts", e.Missing, []int{1, 3})
	relaytest.Equal(t, "the text of the message", e.Message.Text, "[…]two[…]")
	relaytest.Equal(t, "the status of the message", e.Message.Status, Concatenated)
	for _, table := range []string{"delivery", "carrier_id", "part"} {
		relaytest.Equal(t, "the rows of "+table, w.rows(table), 0)
	}
}

func TestTraceMessageAndExplainReportAFailedBackEnd(t *testing.T) {
	m := numbered("e1", "447860000001")
	m.CarrierID = "c1"
	for _, table := range []string{"carrier_id", "version", "part"} {
		w := newWorld(t)
		traced := m
		if table == "part" {
			traced = piece("p1", "447860000001", 1, 2, "a")
		}
		w.breaks(table)
		if _, err := w.service().TraceMessage(t.Context(), traced); err == nil {
			t.Errorf("%s: TraceMessage returns no error", table)
		}
	}
	w := newWorld(t)
	w.breaks("version")
	if _, err := w.service().Explain(t.Context(), m); err == nil {
		t.Error("Explain returns no error")
	}
}
