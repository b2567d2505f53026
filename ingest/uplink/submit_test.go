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
		t.Errorf("updated sensors for a number = %q, want temperature", got)
	}
	if got := f.submit("shed", `{"reading":{"values":{"T&<>":"open"}}}`); !slices.Equal(got, []string{"T&<> open"}) {
		t.Errorf("updated sensors for a text = %q, want the text open", got)
	}
	if got := f.submit("shed", `{"readings":[{"values":{"temperature":3}},{"values":{"x":1}},{"values":{"temperature":4}}]}`); len(got) != 2 {
		t.Errorf("updated sensors for a list with an unmapped key = %q, want 2", got)
	}
	if got := f.submit("shed", `{"reading":[1,2]}`); len(got) != 0 {
		t.Errorf("updated sensors for bytes without a codec = %q, want none", got)
	}
	f.waitProcessed()
	if got := f.readings.stored(); len(got) != 5 {
		t.Errorf("readings = %q, want 5", got)
	}
	var reasons []string
	for _, e := range f.events(event.Quarantined) {
		reasons = append(reasons, e.Source+": "+e.Reason)
	}
	if len(reasons) != 2 {
		t.Fatalf("reasons = %q, want 2", reasons)
	}
	relaytest.Equal(t, "the first reason", reasons[0], "readings: no sensor is mapped to any key of the frame: x")
	answertest.HasPrefix(t, "the second reason", reasons[1], "readings: json: ")
	relaytest.NoError(t, f.log.Close())
	if _, err := f.surface.Submit(t.Context(), 1, "/", "shed", []byte(`{"reading":[1]}`)); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error with a closed journal = %v, want KindUnavailable", err)
	}
}
