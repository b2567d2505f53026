package readings_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// Deleting takes turns with writing: no batch waits for more than a step of it.
func TestWritersGoOnWhileMuchIsForgotten(t *testing.T) {
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
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		if err := s.Forget(t.Context(), 1, []iot.Expired{{DeviceID: "old", SensorID: "old.0", Before: time.Unix(1740830400, n)}}); err != nil {
			t.Error(err)
		}
	})
	written := 0
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
			if _, err := s.Write(t.Context(), batch(written*50, 50)); err != nil {
				t.Error(err)
			}
			written++
		}
	}
	wg.Wait()
	if written < 5 {
		t.Errorf("%d batches were written beside it", written)
	}
	left := all(t, s, "old")
	if len(left) != n/2 || left[0].SensorID != "old.1" {
		t.Errorf("%d readings are left, want %d of old.1", len(left), n/2)
	}
}
