package iot

import (
	"context"
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// onEach runs a benchmark on each engine with an account of 10,000 devices with four sensors each.
func onEach(b *testing.B, run func(b *testing.B, s *Store)) {
	b.Run("SQLite", func(b *testing.B) { run(b, populatedStore(b, db.Options{})) })
	b.Run("PostgreSQL", func(b *testing.B) {
		run(b, populatedStore(b, db.Options{URL: dbtest.Shared(b).NewDatabase(b)}))
	})
}

func populatedStore(b *testing.B, o db.Options) *Store {
	b.Helper()
	s := newStore(dbtest.Open(b, o))
	err := s.db.Write(b.Context(), "benchmark", func(ctx context.Context, tx *db.Tx) error {
		devices, sensors := db.NewBatch("id, identifier, doc"), db.NewBatch("device, key, doc")
		for i := range 10_000 {
			d := testDevice(fmt.Sprint("device-", i), fmt.Sprintf("a84041d2c5%06d", i))
			doc, _ := db.Encode(d)
			devices.Add(d.ID, d.Identifier, doc)
			for _, key := range []string{"temperature", "humidity", "battery", "counter"} {
				doc, _ := db.Encode(testSensor(d.ID, key))
				sensors.Add(d.ID, key, doc)
			}
		}
		if err := tx.Run(ctx, "benchmark", "INSERT INTO device (account, id, identifier, created, doc) SELECT 1, id, identifier, 0, doc FROM batch", devices); err != nil {
			return err
		}
		return tx.Run(ctx, "benchmark", "INSERT INTO sensor (account, device, key, created, doc) SELECT 1, device, key, 0, doc FROM batch", sensors)
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkLoad loads 200 devices with their sensors, like a batch of frames of devices that are not
// cached.
func BenchmarkLoad(b *testing.B) {
	onEach(b, func(b *testing.B, s *Store) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			names := make([]string, 200)
			for i := range names {
				names[i] = fmt.Sprintf("a84041d2c5%06d", (n*200+i*37)%10_000)
			}
			if got, err := s.Load(b.Context(), 1, names); err != nil || len(got) != len(names) {
				b.Fatalf("%d devices, %v", len(got), err)
			}
		}
	})
}

// BenchmarkKeepFrames saves a frame for each of 200 devices that already have MaxFrames frames.
func BenchmarkKeepFrames(b *testing.B) {
	onEach(b, func(b *testing.B, s *Store) {
		seq := 0
		saveFrames := func(perDevice int) {
			var frames []RawFrame
			for i := range 200 {
				for range perDevice {
					seq++
					f := testFrame(fmt.Sprint("device-", i), seq)
					frames = append(frames, f)
				}
			}
			if err := s.KeepFrames(b.Context(), 1, frames); err != nil {
				b.Fatal(err)
			}
		}
		saveFrames(MaxFrames)
		b.ReportAllocs()
		for b.Loop() {
			saveFrames(1)
		}
	})
}

// BenchmarkCountSensors counts 40,000 sensors.
func BenchmarkCountSensors(b *testing.B) {
	onEach(b, func(b *testing.B, s *Store) {
		for b.Loop() {
			if n, err := s.CountSensors(b.Context(), 1); n != 40_000 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
}
