package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/iot"
)

// BenchmarkBatch runs the cache operations of a batch of 500 frames. Each frame is of another
// device and has three readings.
func BenchmarkBatch(b *testing.B) {
	for name, open := range map[string]func() *DB{
		"server":   func() *DB { return openURL(b, redistest.Shared(b).NewDatabase(b)) },
		"embedded": func() *DB { return openEmbedded(b) },
	} {
		b.Run(name, func(b *testing.B) { benchmarkBatches(b, open().IoT()) })
	}
}

func benchmarkBatches(b *testing.B, c *IoT) {
	const frames = 500
	n := 0
	for b.Loop() {
		n++
		seen := make([]iot.FrameKey, frames)
		heard := make(map[string]time.Time, frames)
		var points []iot.Point
		for i := range frames {
			device := fmt.Sprintf("01jd8q9x7v3k5m2n4p6r8%05d", (n*frames+i)%10_000)
			seen[i] = iot.FrameKey{Device: device, Dedup: fmt.Sprint("uplink", n), RecordID: fmt.Sprint("n1-u", n*frames+i)}
			heard[device] = timeAt(float64(n))
			for _, key := range []string{"temperature", "humidity", "battery"} {
				points = append(points, iot.Point{DeviceID: device, SensorID: device + "." + key, Type: key, Time: timeAt(float64(n)), Value: 21.5})
			}
		}
		if _, err := c.Deduplicate(b.Context(), framesOf(1, seen), 2*time.Hour); err != nil {
			b.Fatal(err)
		}
		if err := c.SetLatest(b.Context(), pointsOf(1, points)); err != nil {
			b.Fatal(err)
		}
		if err := c.SetHeard(b.Context(), map[relay.AccountID]map[string]time.Time{1: heard}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(frames*float64(n)/b.Elapsed().Seconds(), "frames/s")
}

// TestABatchAllocatesLittle limits the allocations of a batch before the batch is sent: 8 for
// each device, for any number of frames, and about 2 for each mark.
func TestABatchAllocatesLittle(t *testing.T) {
	const devices, frames = 10, 1000
	seen, points := make([]iot.FrameKey, frames), make([]iot.Point, frames)
	for i := range frames {
		device := fmt.Sprintf("01jd8q9x7v3k5m2n4p6r8%05d", i%devices)
		seen[i] = iot.FrameKey{Device: device, Dedup: fmt.Sprint("uplink", i), RecordID: fmt.Sprint("n1-u", i)}
		points[i] = iot.Point{DeviceID: device, SensorID: device + ".t", Type: "temperature", Time: timeAt(float64(i)), Value: 21.5}
	}
	if got := latestByDevice(points); len(got) != devices || len(got[0].fields) != 2 || !strings.HasSuffix(got[0].fields[1], "21.5") {
		t.Errorf("got %d devices, the first with %q; want the newest point of each", len(got), got[0].fields)
	}
	for name, tc := range map[string]struct {
		maxAllocs float64
		do        func()
	}{
		"latest": {8 * devices, func() { latestByDevice(points) }},
		"marks":  {2.2 * frames, func() { groupByShard(seen, spanAt(time.Unix(0, 0), time.Hour)) }},
	} {
		if allocs := testing.AllocsPerRun(10, tc.do); allocs > tc.maxAllocs {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, allocs, tc.maxAllocs)
		} else {
			t.Logf("%s: %.0f allocations", name, allocs)
		}
	}
}
