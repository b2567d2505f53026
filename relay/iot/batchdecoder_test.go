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

// worker decodes batches: each frame takes 40 ms and gives its payload as the temperature.
type worker struct {
	sizes []int // of the batches
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
		decoded[i].Took = 40 * time.Millisecond
		used += decoded[i].Took
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
	g.stored(arrivals...)
	// Three frames use up the account's 100 ms; the others wait for frames of other accounts.
	relaytest.Equal(t, "the sizes of the batches", w.sizes, []int{5, 1, 1})
	relaytest.Equal(t, "the readings", g.history(1), []string{"temperature=4", "temperature=3", "temperature=2", "temperature=1", "temperature=0"})
}

// A frame that cannot be run is not refused: the batch is tried again.
func TestAnUnavailableDecoderRefusesNoFrame(t *testing.T) {
	g, w := newWorkerGateway(t)
	w.down = relay.Errorf(relay.KindUnavailable, "codec worker: start: no memory")
	_, err := g.Ingest(t.Context(), []iot.Arrival{g.payload("a", 7)})
	relaytest.Equal(t, "the kind of the error while it compiles", relay.KindOf(err), relay.KindUnavailable)
	w.down = nil
	g.stored(g.payload("a", 7))
	w.down = relay.Errorf(relay.KindUnavailable, "codec worker: start: no memory")
	_, err = g.Ingest(t.Context(), []iot.Arrival{g.payload("b", 8)})
	relaytest.Equal(t, "the kind of the error while it decodes", relay.KindOf(err), relay.KindUnavailable)
}
