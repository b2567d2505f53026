package uplink

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// submit adds readings to a device of account 1 and returns the updated keys and values.
func (f *flow) submit(identifier, body string) (readings []string) {
	f.t.Helper()
	updated, err := f.surface.Submit(f.t.Context(), 1, "/iot/devices/x/readings", identifier, []byte(body))
	relaytest.NoError(f.t, err)
	for _, r := range updated.Sensors {
		if r.Value == nil {
			readings = append(readings, r.Key+" "+*r.Text)
		} else {
			readings = append(readings, r.Key)
		}
	}
	return readings
}

func TestSubmittedReadingsAreProcessedLikeFrames(t *testing.T) {
	f := newFlow(t)
	f.run()
	f.post("/webhooks/generic/shed?decoder_id=d1", "hook-1", `{"temperature":1}`)
	if got := f.submit("shed", `{"reading":{"values":{"temperature":2}}}`); !slices.Equal(got, []string{"temperature"}) {
		t.Errorf("values: %q", got)
	}
	if got := f.submit("shed", `{"reading":{"values":{"T&<>":"open"}}}`); !slices.Equal(got, []string{"T&<> open"}) {
		t.Errorf("a text: %q", got)
	}
	if got := f.submit("shed", `{"readings":[{"values":{"temperature":3}},{"values":{"x":1}},{"values":{"temperature":4}}]}`); len(got) != 2 {
		t.Errorf("a list with one that means nothing: %q", got)
	}
	if got := f.submit("shed", `{"reading":[1,2]}`); len(got) != 0 {
		t.Errorf("bytes for a decoder of values: %q", got)
	}
	f.settled()
	if got := f.readings.stored(); len(got) != 5 {
		t.Errorf("stored %q", got)
	}
	var reasons []string
	for _, e := range f.events(event.Quarantined) {
		reasons = append(reasons, e.Source+": "+e.Reason)
	}
	if len(reasons) != 2 {
		t.Fatalf("%d reasons, want 2: %q", len(reasons), reasons)
	}
	relaytest.Equal(t, "the first reason", reasons[0], "readings: no sensor is mapped to any key of the frame: x")
	answertest.Begins(t, "the second reason", reasons[1], "readings: json: ")
	relaytest.NoError(t, f.log.Close())
	if _, err := f.surface.Submit(t.Context(), 1, "/", "shed", []byte(`{"reading":[1]}`)); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("with the journal closed: %v", err)
	}
}
