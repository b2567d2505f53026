package uplink

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// discardIngester is an Ingester that stores nothing.
type discardIngester struct{}

func (discardIngester) Ingest(_ context.Context, a []iot.Arrival) ([]iot.Outcome, error) {
	return make([]iot.Outcome, len(a)), nil
}

// BenchmarkProcess parses a batch of posts.
func BenchmarkProcess(b *testing.B) {
	items := uplinks(b, 1000)
	p := NewProcessor(discardIngester{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intaketest.Process(b.Context(), p, items...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/frame")
}

// uplinks returns n posts, each of another device.
func uplinks(tb testing.TB, n int) []intake.Item {
	tb.Helper()
	body, err := os.ReadFile("testdata/chirpstack-v4-up.json")
	if err != nil {
		tb.Fatal(err)
	}
	items := make([]intake.Item, n)
	for i := range items {
		post := strings.Replace(string(body), "24e124136b502217", fmt.Sprintf("24e12413%08x", i), 1)
		items[i] = intake.Item{Seq: uint64(i), Entry: intake.Entry{Account: 1, Source: "chirpstack-v4", Path: "/webhooks/lorawan", Query: "event=up", Body: []byte(post), ReceivedAt: time.Now()}}
	}
	return items
}

// TestAllocationsPerFrame limits the allocations of a frame, most of which are the frame and its
// strings.
func TestAllocationsPerFrame(t *testing.T) {
	const frames, maxAllocs = 100, 54
	items, p := uplinks(t, frames), NewProcessor(discardIngester{}, nil)
	allocs := testing.AllocsPerRun(20, func() {
		if _, err := intaketest.Process(t.Context(), p, items...); err != nil {
			t.Fatal(err)
		}
	})
	if n := allocs / frames; n > maxAllocs {
		t.Errorf("allocations per frame = %.1f, want at most %d", n, maxAllocs)
	}
	t.Logf("allocations per frame = %.1f", allocs/frames)
}

// BenchmarkSearch searches 20,000 posts for texts that no post contains, and for the frames of
// a device with one post, the newest.
func BenchmarkSearch(b *testing.B) {
	const postCount = 20_000
	logger, db := slog.New(slog.DiscardHandler), recordstest.Open(b)
	log, err := journal.Open(b.TempDir(), journal.Options{Logger: logger})
	relaytest.NoError(b, err)
	b.Cleanup(func() { _ = log.Close(); _ = db.Close() })
	posts, err := intake.New(event.Uplink, "n1", log, db.Statuses("n1"), NewProcessor(discardIngester{}, logger), intake.Options{Logger: logger})
	relaytest.NoError(b, err)
	var pending []journal.Pending
	for _, item := range uplinks(b, postCount) {
		p, err := log.Stage(b.Context(), item.Entry.Append(nil))
		relaytest.NoError(b, err)
		pending = append(pending, p)
	}
	for _, p := range pending {
		_, err := p.Wait(b.Context())
		relaytest.NoError(b, err)
	}
	for _, query := range []string{"absent", "a840416b2c000103"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				relaytest.NoError(b, posts.Events(b.Context(), event.Filter{Query: query}, 0, func(event.Event, uint64) bool { return true }))
			}
		})
	}
	b.Run("frames of a device", func(b *testing.B) {
		inspector := NewInspector(posts, iot.New(db.Devices, cachetest.Open(b).IoT(), &readings{}, catalogtest.Compile, iot.Options{}))
		device := iot.Device{ID: "d1", Identifier: "24e1241300004e1f"}
		relaytest.NoError(b, db.Devices.CreateDevice(b.Context(), 1, device, nil))
		for b.Loop() {
			arrivals, err := inspector.Recent(b.Context(), 1, device, 20)
			relaytest.NoError(b, err)
			if len(arrivals) != 1 {
				b.Fatalf("frames = %d, want 1", len(arrivals))
			}
		}
	})
}
