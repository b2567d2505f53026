package readings_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// Forget deletes in short transactions, so that a batch waits for at most one of them.
func TestBatchesAreWrittenDuringForget(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 16_000
	var b iot.Readings
	for i := range n {
		p := reading(i)
		p.DeviceID, p.SensorID = "old", fmt.Sprint("old.", i%2)
		b.Points = append(b.Points, p)
	}
	if _, err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	forgotten := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(forgotten)
		if err := s.Forget(t.Context(), 1, []iot.ExpiredPoints{{DeviceID: "old", SensorID: "old.0", Before: time.Unix(1740830400, n)}}); err != nil {
			t.Error(err)
		}
	})
	written := 0
	for running := true; running; {
		select {
		case <-forgotten:
			running = false
		default:
			if _, err := s.Write(t.Context(), batch(written*50, 50)); err != nil {
				t.Error(err)
			}
			written++
		}
	}
	wg.Wait()
	if written < 5 {
		t.Errorf("%d batches were written during Forget, want at least 5", written)
	}
	remaining := allReadings(t, s, "old")
	if len(remaining) != n/2 || remaining[0].SensorID != "old.1" {
		t.Errorf("%d readings remain, want %d of old.1", len(remaining), n/2)
	}
}
