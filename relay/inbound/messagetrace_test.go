package inbound

import (
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTraceMessageFindsDuplicatesAndParts(t *testing.T) {
	w := newWorld(t, geo("g1", "4478", HTTPGet, "http://h/?m=%m"))
	s := w.service()
	original, duplicate := numbered("e1", "447860000001"), numbered("e2", "447860000001")
	original.CarrierID, duplicate.CarrierID = "c1", "c1"
	receive(t, s, original, duplicate)
	deliveryCount := w.rows("delivery")

	trace, err := s.TraceMessage(t.Context(), original)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "original and id of the first message", []string{trace.DuplicateOf, trace.MessageID}, []string{"", "e1"})
	relaytest.Equal(t, "the part of the first message", trace.Part, nil)
	relaytest.Equal(t, "the relay of the first message", trace.Decision.Matched.ID, "g1")

	trace, err = s.TraceMessage(t.Context(), duplicate)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the original of a duplicate", trace.DuplicateOf, "e1")
	relaytest.Equal(t, "the state of a duplicate", trace.Decision.State, "")

	part := piece("p1", "447860000001", 1, 2, "a")
	trace, err = s.TraceMessage(t.Context(), part)
	relaytest.NoError(t, err)
	if trace.Part == nil {
		t.Fatal("the trace of a waiting part has no part")
	}
	relaytest.Equal(t, "the number of parts of the message", trace.Part.Total, 2)
	relaytest.Equal(t, "the message of a waiting part", trace.MessageID, "")

	receive(t, s, part, piece("p2", "447860000001", 2, 2, "b"))
	trace, err = s.TraceMessage(t.Context(), part)
	relaytest.NoError(t, err)
	if trace.Part == nil {
		t.Error("the trace of a joined part has no part")
	}
	relaytest.Equal(t, "the message of a joined part", trace.MessageID, "p1")
	relaytest.Equal(t, "the number of deliveries", w.rows("delivery"), deliveryCount+1)
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
		t.Error("the message has no ReceivedAt")
	}
	e, err = s.Explain(t.Context(), piece("", "447860000001", 2, 3, "two"))
	relaytest.NoError(t, err)
	if e.Part == nil {
		t.Fatal("the explanation of a part has no part")
	}
	relaytest.Equal(t, "the number of the part", e.Part.Number, 2)
	relaytest.Equal(t, "the missing parts", e.MissingParts, []int{1, 3})
	relaytest.Equal(t, "the text of the message", e.Message.Text, "[…]two[…]")
	relaytest.Equal(t, "the status of the message", e.Message.Stat, Concatenated)
	for _, table := range []string{"delivery", "carrier_id", "part"} {
		relaytest.Equal(t, "the rows of "+table, w.rows(table), 0)
	}
}

func TestTraceMessageAndExplainFailWithoutTheirTables(t *testing.T) {
	m := numbered("e1", "447860000001")
	m.CarrierID = "c1"
	for _, table := range []string{"carrier_id", "version", "part"} {
		w := newWorld(t)
		traced := m
		if table == "part" {
			traced = piece("p1", "447860000001", 1, 2, "a")
		}
		w.breakTable(table)
		if _, err := w.service().TraceMessage(t.Context(), traced); err == nil {
			t.Errorf("%s: TraceMessage returns no error", table)
		}
	}
	w := newWorld(t)
	w.breakTable("version")
	if _, err := w.service().Explain(t.Context(), m); err == nil {
		t.Error("Explain returns no error")
	}
}
