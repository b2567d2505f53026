package journal

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// frameSize is the size in bytes of a typical post of a network server.
const frameSize = 900

// BenchmarkAppend measures acknowledged appends. The variants named floor write and sync the
// same number of bytes in batches of the same size without a log.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(strconv.Itoa(writers)+" writers", func(b *testing.B) { benchAppend(b, writers) })
		b.Run(strconv.Itoa(writers)+" writers, floor", func(b *testing.B) { benchFloor(b, writers) })
	}
}

func benchAppend(b *testing.B, writers int) {
	l := mustOpen(b, b.TempDir(), Options{MaxBytes: 1 << 40})
	payload := bytes.Repeat([]byte("f"), frameSize)
	b.ReportAllocs()
	b.SetBytes(frameSize)
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < b.N; i += writers {
				if _, err := l.Append(context.Background(), payload); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(b.N)/float64(l.Stats().Fsyncs), "records/commit")
}

func benchFloor(b *testing.B, perCommit int) {
	dir, d := b.TempDir(), osDisk{}
	batch := make([]byte, perCommit*(headerSize+frameSize))
	var f file
	off := int64(0)
	b.SetBytes(frameSize)
	for n := 0; n < b.N; n += perCommit {
		if f == nil || off+int64(len(batch)) > 16<<20 {
			if f != nil {
				_ = f.Close()
			}
			var err error
			if f, err = d.Open(filepath.Join(dir, strconv.Itoa(n)), os.O_RDWR|os.O_CREATE); err != nil {
				b.Fatal(err)
			}
			_ = f.Allocate(16 << 20)
			off = 0
		}
		if _, err := f.WriteAt(batch, off); err != nil {
			b.Fatal(err)
		}
		relaytest.NoError(b, f.Datasync())
		off += int64(len(batch))
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	_ = f.Close()
}

// newFilledLog returns the directory of a closed log with n records.
func newFilledLog(b *testing.B, n int) string {
	dir := b.TempDir()
	l := mustOpen(b, dir, unboundedOptions())
	payload := bytes.Repeat([]byte("f"), frameSize)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range n / 64 {
				if _, err := l.Append(context.Background(), payload); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	mustClose(b, l)
	return dir
}

// unboundedOptions returns options without a practical quota.
func unboundedOptions() Options { return Options{MaxBytes: 1 << 50} }

// BenchmarkNext measures reading of existing records in batches of 500.
func BenchmarkNext(b *testing.B) {
	l := mustOpen(b, newFilledLog(b, 64_000), Options{})
	c := mustConsumer(b, l, "c")
	b.ReportAllocs()
	b.SetBytes(frameSize)
	for n := 0; n < b.N; {
		recs, err := c.Next(b.Context(), 500)
		relaytest.NoError(b, err)
		if n += len(recs); recs[len(recs)-1].Seq == l.Stats().Last {
			c.Rewind()
		}
	}
}

var records = flag.Int("records", 128_000, "records of the journal that BenchmarkOpen opens")

// BenchmarkOpen measures recovery. The rate counts verified bytes.
func BenchmarkOpen(b *testing.B) {
	dir := newFilledLog(b, *records)
	for b.Loop() {
		l := mustOpen(b, dir, unboundedOptions())
		b.SetBytes(l.Stats().Bytes)
		mustClose(b, l)
	}
}

func BenchmarkCommit(b *testing.B) {
	l := mustOpen(b, b.TempDir(), Options{})
	c := mustConsumer(b, l, "c")
	l.durableSeq = 1 << 60 // so that each commit moves the checkpoint
	b.ReportAllocs()
	for b.Loop() {
		relaytest.NoError(b, c.Commit(c.Committed()+1))
	}
}
