package uplink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// newInspector returns an inspector of the flow's posts, and its service.
func (f *flow) newInspector() (*Inspector, *iot.Service) {
	s := iot.New(f.db.Devices, f.cache, f.readings, catalogtest.Compile, iot.Options{})
	return NewInspector(f.intake, s), s
}

func TestPostsArePreviewed(t *testing.T) {
	f := newFlow(t)
	f.run()
	for _, body := range []string{`{"id":"a","temperature":1}`, `{"id":"a","wind":1}`, `[{"id":"a","temperature":2},{"id":"b","wind":3}]`, `{"temperature":4}`} {
		f.post("/webhooks/generic?decoder_id=d1", "hook-1", body)
	}
	f.waitProcessed()
	inspector, _ := f.newInspector()
	readingsBefore := f.readings.stored()
	var got []string
	n, _, err := f.intake.Batches(t.Context(), event.Filter{}, time.Time{}, 3, func(sel intake.Selection) error {
		previews, err := inspector.NewPreview().Posts(t.Context(), sel.Items)
		relaytest.NoError(t, err)
		for i, p := range previews {
			var frames []string
			for _, frame := range p.Frames {
				frames = append(frames, fmt.Sprint(frame.Identifier, len(frame.Readings)))
			}
			isSame := sel.Events[i].State == p.State && sel.Events[i].Reason == p.Reason
			got = append(got, fmt.Sprint(p.State, " ", frames, " ", isSame))
		}
		return nil
	})
	want := []string{"quarantined [a0] true", "quarantined [a1 b0] true", "quarantined [] true"}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of selected events", n, 4)
	relaytest.Equal(t, "the previews of the newest three events", got, want)
	if got := f.readings.stored(); !slices.Equal(got, readingsBefore) {
		t.Errorf("readings after a preview = %q, want %q", got, readingsBefore)
	}
}

func TestTheLastFramesOfADeviceAreFound(t *testing.T) {
	f := newFlow(t)
	f.run()
	for n := range 4 {
		f.post("/webhooks/generic?decoder_id=d1", "hook-1", fmt.Sprintf(`[{"id":"A8-40-41-D2-C5-18-2F-01","temperature":%d},{"id":"other","temperature":9}]`, n))
	}
	f.post("/webhooks/lorawan?decoder_id=d1", "hook-1", strings.ReplaceAll(chirpstack(t), "24e124136b502217", "a84041d2c5182f01"))
	f.post("/webhooks/lorawan?decoder_id=d1", "hook-1", strings.ReplaceAll(chirpstack(t), "24e124136b502217", "a84041d2c5182f01"))
	f.waitProcessed()
	inspector, s := f.newInspector()
	d, err := s.DeviceByIdentifier(t.Context(), 1, "a84041d2c5182f01")
	relaytest.NoError(t, err)
	for limit, want := range map[int]int{1: 1, 3: 3, 100: 5} {
		got, err := inspector.Recent(t.Context(), 1, d, limit)
		relaytest.NoError(t, err)
		if len(got) != want {
			t.Fatalf("frames with the limit %d = %d, want %d", limit, len(got), want)
		}
		relaytest.Equal(t, "the sender of the newest frame", got[0].Frame.Sender, "chirpstack-v4")
		if want > 1 {
			relaytest.Equal(t, "the temperature of the previous frame", got[1].Frame.Object["temperature"], 3.0)
		}
	}
	if got, err := inspector.Recent(t.Context(), 2, d, 5); relay.KindOf(err) != relay.KindNotFound || len(got) > 0 {
		t.Errorf("frames for another account = %d, error = %v, want 0 and KindNotFound", len(got), err)
	}
}

func TestFramesDeletedFromTheJournalAreReadFromTheFrameLog(t *testing.T) {
	f := newFlow(t)
	f.run()
	inspector, s := f.newInspector()
	f.post("/webhooks/generic?decoder_id=d1", "hook-1", `{"id":"a","temperature":1}`)
	f.waitProcessed()
	d, err := s.DeviceByIdentifier(t.Context(), 1, "a")
	relaytest.NoError(t, err)
	loggedFrame := iot.RawFrame{ID: "n0-u1", DeviceID: d.ID, Kind: "uplink", Payload: "0102", Object: []byte(`{"temperature":7}`), FPort: new(int64(3)), FCnt: new(int64(4))}
	var frames []iot.RawFrame
	for _, change := range []func(*iot.RawFrame){
		func(*iot.RawFrame) {},
		func(r *iot.RawFrame) { r.ID, r.Truncated = "n0-u2", true },
		func(r *iot.RawFrame) { r.ID, r.Kind = "n0-u3", "join" },
		func(r *iot.RawFrame) {
			r.ID, r.Object, r.Samples = "n0-u4", nil, []byte(`[{"key":"t","value":2},{"key":"s","text":"x"}]`)
		},
		func(r *iot.RawFrame) { r.ID = "n1-u1" }, // also in the journal
	} {
		frame := loggedFrame
		frame.ReceivedAt = time.Now().Add(-time.Minute)
		change(&frame)
		frames = append(frames, frame)
	}
	relaytest.NoError(t, f.db.Devices.KeepFrames(t.Context(), 1, frames))
	got, err := inspector.Recent(t.Context(), 1, d, 10)
	relaytest.NoError(t, err)
	var ids []string
	for _, a := range got {
		ids = append(ids, a.RecordID)
	}
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"n0-u1", "n0-u4", "n1-u1"}) {
		t.Fatalf("frames = %q, want n0-u1, n0-u4 and n1-u1", ids)
	}
	for _, a := range got {
		switch f := a.Frame; a.RecordID {
		case "n0-u1":
			relaytest.Equal(t, "the port", f.FPort, 3)
			relaytest.Equal(t, "HasFPort", f.HasFPort, true)
			relaytest.Equal(t, "the counter", f.FCnt, 4)
			relaytest.Equal(t, "the length of the payload", len(f.Payload), 2)
			relaytest.Equal(t, "the temperature", f.Object["temperature"], 7.0)
		case "n0-u4":
			if len(f.Samples) != 2 {
				t.Fatalf("samples = %d, want 2", len(f.Samples))
			}
			relaytest.Equal(t, "the first value", f.Samples[0].Value, 2)
			relaytest.Equal(t, "the second text", f.Samples[1].Text, "x")
		}
	}
	if f.events(event.Quarantined) != nil {
		t.Error("a post is quarantined")
	}
}
