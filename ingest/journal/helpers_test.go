package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustOpen(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet()
	}
	l, err := Open(dir, o)
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	relaytest.NoError(t, l.Close())
}

func mustAppend(t testing.TB, l *Log, payload string) uint64 {
	t.Helper()
	seq, err := l.Append(context.Background(), []byte(payload))
	relaytest.NoError(t, err)
	return seq
}

// writers append to a log concurrently.
type writers struct {
	running sync.WaitGroup
	mu      sync.Mutex
	acked   map[uint64]string // payloads by sequence
}

// startWriters starts n writers. Each appends up to each payloads, or until an append fails
// with the error end; any other error fails the test.
func startWriters(t *testing.T, l *Log, n, each int, end error, payload func(writer, i int) string) *writers {
	t.Helper()
	w := &writers{acked: make(map[uint64]string)}
	for writer := range n {
		w.running.Go(func() {
			for i := range each {
				p := payload(writer, i)
				seq, err := l.Append(context.Background(), []byte(p))
				if err != nil {
					if !errors.Is(err, end) {
						t.Error(err)
					}
					return
				}
				w.mu.Lock()
				w.acked[seq] = p
				w.mu.Unlock()
			}
		})
	}
	return w
}

// wait waits until all writers have ended, and returns the acknowledged records.
func (w *writers) wait() map[uint64]string {
	w.running.Wait()
	return w.acked
}

// fill appends n payloads of about 100 bytes and returns them by sequence.
func fill(t testing.TB, l *Log, n int) map[uint64]string {
	t.Helper()
	stored := map[uint64]string{}
	for i := range n {
		p := fmt.Sprintf("payload %d of %d %s", i, n, strings.Repeat("x", 80))
		stored[mustAppend(t, l, p)] = p
	}
	return stored
}

// content returns the records of the log by sequence. The test fails if the sequences do not
// ascend.
func content(t testing.TB, l *Log) map[uint64]string {
	t.Helper()
	got, last := map[uint64]string{}, uint64(0)
	err := l.Range(context.Background(), 0, math.MaxUint64, func(r Record) error {
		if r.Seq <= last {
			t.Errorf("record %d comes after %d", r.Seq, last)
		}
		last, got[r.Seq] = r.Seq, string(r.Payload)
		return nil
	})
	relaytest.NoError(t, err)
	return got
}

// sameContent compares records by sequence.
func sameContent(t testing.TB, got, want map[uint64]string) {
	t.Helper()
	relaytest.Equal(t, "the records", got, want)
}

// wantGaps compares the first and the last missing sequence of each gap, and ends
// the test if they differ.
func wantGaps(t testing.TB, l *Log, want ...[2]uint64) {
	t.Helper()
	var got [][2]uint64
	for _, g := range l.Gaps() {
		got = append(got, [2]uint64{g.First, g.Last})
	}
	if diff := relaytest.Diff(got, want); diff != "" {
		t.Fatalf("the missing sequences differ (-want +got):\n%s", diff)
	}
}

func without(m map[uint64]string, seqs ...uint64) map[uint64]string {
	rest := map[uint64]string{}
	for seq, p := range m {
		if !slices.Contains(seqs, seq) {
			rest[seq] = p
		}
	}
	return rest
}

// segmentFiles returns the paths of the segments, oldest first.
func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	relaytest.NoError(t, err)
	return paths
}

// edit changes a file's bytes.
func edit(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	relaytest.NoError(t, err)
	relaytest.NoError(t, os.WriteFile(path, change(b), 0o640))
}

func mustConsumer(t testing.TB, l *Log, name string) *Consumer {
	t.Helper()
	c, err := l.Consumer(name)
	relaytest.NoError(t, err)
	return c
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// newClock returns a clock that tests move.
func newClock() *relaytest.Clock {
	return relaytest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC))
}

// faultyDisk fails on request.
type faultyDisk struct {
	osDisk
	mu                              sync.Mutex
	write, sync, trunc, dir, create error
	partial                         int // bytes written before a write fails
}

func (d *faultyDisk) set(change func(*faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *faultyDisk) get(which func(*faultyDisk) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return which(d)
}

func (d *faultyDisk) Open(path string, flag int) (file, error) {
	if err := d.get(func(d *faultyDisk) error { return d.create }); err != nil && flag&os.O_CREATE != 0 {
		return nil, err
	}
	f, err := d.osDisk.Open(path, flag)
	return faultyFile{f, d}, err
}

func (d *faultyDisk) SyncDir(dir string) error {
	if err := d.get(func(d *faultyDisk) error { return d.dir }); err != nil {
		return err
	}
	return d.osDisk.SyncDir(dir)
}

type faultyFile struct {
	file
	d *faultyDisk
}

func (f faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.d.get(func(d *faultyDisk) error { return d.write }); err != nil {
		n, _ := f.file.WriteAt(b[:min(len(b), f.d.partial)], off)
		return n, err
	}
	return f.file.WriteAt(b, off)
}

func (f faultyFile) Datasync() error {
	if err := f.d.get(func(d *faultyDisk) error { return d.sync }); err != nil {
		return err
	}
	return f.file.Datasync()
}

func (f faultyFile) Truncate(n int64) error {
	if err := f.d.get(func(d *faultyDisk) error { return d.trunc }); err != nil {
		return err
	}
	return f.file.Truncate(n)
}
