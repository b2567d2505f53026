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
	items := uplinks(b, 1000)
	p := NewProcessor(nowhere{}, nil)
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

// uplinks are posts of as many devices.
func uplinks(tb testing.TB, n int) []intake.Item {
	tb.Helper()
	body, err := os.ReadFile("testdata/chirpstack-v4-up.json")
	if err != nil {
		tb.Fatal(err)
	}
	items := make([]intake.Item, n)
	for i := range items {
		one := strings.Replace(string(body), "24e124136b502217", fmt.Sprintf("24e12413%08x", i), 1)
		items[i] = intake.Item{Seq: uint64(i), Entry: intake.Entry{Account: 1, Source: "chirpstack-v4", Path: "/webhooks/lorawan", Query: "event=up", Body: []byte(one), ReceivedAt: time.Now()}}
	}
	return items
}

// TestAFrameAllocatesLittle holds what reading a batch allocates. Most of it is the
// frame and its texts.
func TestAFrameAllocatesLittle(t *testing.T) {
	const frames, most = 100, 54
	items, p := uplinks(t, frames), NewProcessor(nowhere{}, nil)
	var keys []uint64
	allocs := testing.AllocsPerRun(20, func() {
		keys = keys[:0]
		for i := range items {
			items[i].Prepared = nil
			keys = p.Keys(&items[i], keys)
		}
		if _, err := p.Process(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	})
	if per := allocs / frames; per > most {
		t.Errorf("%.1f allocations for a frame, want at most %d", per, most)
	}
	t.Logf("%.1f allocations for a frame", allocs/frames)
}
