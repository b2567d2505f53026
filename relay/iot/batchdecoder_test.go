package iot_test

import (
	"context"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// worker decodes batches. Each frame takes 40 ms, or 1 s if its payload is 255. The temperature of
// a frame is the first byte of its payload.
type worker struct {
	sizes []int // frames per batch
	down  error
}

func (w *worker) Decode(f *decoders.Frame) (decoders.Result, error) {
	return decoders.Result{Readings: []decoders.Reading{{Key: "temperature", Value: float64(f.Payload[0])}}}, nil
}

func (w *worker) DecodeBatch(_ context.Context, _ int64, frames []*decoders.Frame, budget time.Duration) ([]decoders.Decoded, error) {
	if w.down != nil {
		return nil, w.down
	}
	w.sizes = append(w.sizes, len(frames))
	decoded := make([]decoders.Decoded, len(frames))
	used := time.Duration(0)
	for i, f := range frames {
		if budget > 0 && used >= budget {
			decoded[i].Skipped = true
			continue
		}
		decoded[i].Result, decoded[i].Err = w.Decode(f)
		decoded[i].CPUTime = 40 * time.Millisecond
		if f.Payload[0] == 255 {
			decoded[i].CPUTime = time.Second
		}
		used += decoded[i].CPUTime
	}
	return decoded, nil
}

func newWorkerGateway(t *testing.T) (*gateway, *worker) {
	t.Helper()
	g, w := newGateway(t), &worker{}
	g.compile = func(string, string, bool) (decoders.Decoder, error) { return w, w.down }
	g.start()
	return g, w
}

func TestFramesOfOneDecoderAreDecodedInOneBatch(t *testing.T) {
	g, w := newWorkerGateway(t)
	var arrivals []iot.Arrival
	for i := range 5 {
		arrivals = append(arrivals, g.payload(string(rune('a'+i)), byte(i)))
		arrivals[i].Frame.SampleTime = g.now.Add(time.Duration(i) * time.Second)
	}
	g.mustStore(arrivals...)
	// Three frames use up the account's 100 ms. Each remaining frame is decoded in its own batch.
	relaytest.Equal(t, "the sizes of the batches", w.sizes, []int{5, 1, 1})
	relaytest.Equal(t, "the readings", g.history(1), []string{"temperature=4", "temperature=3", "temperature=2", "temperature=1", "temperature=0"})
}

// The time of frames that are decoded before their turn counts at once, so the account's second
// decoder has none left.
func TestTheTimeOfFramesDecodedAheadCounts(t *testing.T) {
	g, w := newWorkerGateway(t)
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("d2", "temperature")))
	var arrivals []iot.Arrival
	for i := range 6 {
		a := g.payload(string(rune('a'+i)), byte(i))
		a.Frame.SampleTime = g.now.Add(time.Duration(i) * time.Second)
		if i%2 == 1 {
			a.DecoderID, a.Frame.Identifier = "d2", "24e124136b502218"
		}
		arrivals = append(arrivals, a)
	}
	g.mustStore(arrivals...)
	relaytest.Equal(t, "the sizes of the batches", w.sizes, []int{3, 1, 1, 1})
}

// A frame that was decoded before its turn is stored, even if another account has since used up the
// time of the batch.
func TestAFrameDecodedAheadIsNotDeferred(t *testing.T) {
	g, w := newWorkerGateway(t)
	otherAccount := g.payload("b", 255)
	otherAccount.Account, otherAccount.Frame.Identifier = 2, "24e124136b502218"
	frame1, frame3 := g.payload("a", 1), g.payload("c", 3)
	frame3.Frame.SampleTime = g.now.Add(time.Second)
	outcomes := g.mustStore(frame1, otherAccount, frame3)
	relaytest.Equal(t, "the deferred frames", []bool{outcomes[0].Deferred, outcomes[1].Deferred, outcomes[2].Deferred}, []bool{false, false, false})
	relaytest.Equal(t, "the sizes of the batches", w.sizes, []int{2, 1})
}

// A frame whose codec cannot be run is not refused: the caller repeats the batch.
func TestAnUnavailableDecoderReturnsAnError(t *testing.T) {
	g, w := newWorkerGateway(t)
	w.down = relay.Errorf(relay.KindUnavailable, "codec worker: start: no memory")
	_, err := g.Ingest(t.Context(), []iot.Arrival{g.payload("a", 7)})
	relaytest.Equal(t, "the kind of the error while it compiles", relay.KindOf(err), relay.KindUnavailable)
	w.down = nil
	g.mustStore(g.payload("a", 7))
	w.down = relay.Errorf(relay.KindUnavailable, "codec worker: start: no memory")
	_, err = g.Ingest(t.Context(), []iot.Arrival{g.payload("b", 8)})
	relaytest.Equal(t, "the kind of the error while it decodes", relay.KindOf(err), relay.KindUnavailable)
}
