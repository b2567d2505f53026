package uplink

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/iot"
)

type nowhere struct{}

func (nowhere) Ingest(_ context.Context, a []iot.Arrival) ([]iot.Outcome, error) {
	return make([]iot.Outcome, len(a)), nil
}

// BenchmarkProcess measures what reading a batch costs, with and without the
// keys that keep its order.
func BenchmarkProcess(b *testing.B) {
	body, err := os.ReadFile("testdata/chirpstack-v4-up.json")
	if err != nil {
		b.Fatal(err)
	}
	items := make([]intake.Item, 1000)
	for i := range items {
		one := strings.Replace(string(body), "24e124136b502217", fmt.Sprintf("24e12413%08x", i), 1)
		items[i] = intake.Item{Seq: uint64(i), Entry: intake.Entry{Account: 1, Path: "/webhooks/lorawan", Query: "event=up", Body: []byte(one), ReceivedAt: time.Now()}}
	}
	p := NewProcessor(nowhere{})
	for name, keyed := range map[string]bool{"with keys": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var keys []uint64
				for i := range items {
					if items[i].Prepared = nil; keyed {
						keys = p.Keys(&items[i], keys)
					}
				}
				set := make(map[uint64]struct{}, len(keys))
				for _, k := range keys {
					set[k] = struct{}{}
				}
				if _, err := p.Process(b.Context(), items); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/frame")
		})
	}
}
