package uplink

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/iot"
)

type nowhere struct{}

func (nowhere) Ingest(_ context.Context, a []iot.Arrival) ([]iot.Outcome, error) {
	return make([]iot.Outcome, len(a)), nil
}

// BenchmarkProcess measures what reading a batch costs.
func BenchmarkProcess(b *testing.B) {
	items := uplinks(b, 1000)
	p := NewProcessor(nowhere{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intaketest.Process(b.Context(), p, items...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/frame")
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
	allocs := testing.AllocsPerRun(20, func() {
		if _, err := intaketest.Process(t.Context(), p, items...); err != nil {
			t.Fatal(err)
		}
	})
	if per := allocs / frames; per > most {
		t.Errorf("%.1f allocations for a frame, want at most %d", per, most)
	}
	t.Logf("%.1f allocations for a frame", allocs/frames)
}
