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

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustOpen(t testing.TB, dir string, o Options) *Log {
	t.Helper()
	if o.Logger == nil {
		o.Logger = discardLogger()
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

// writers is a group of goroutines that append to a log.
type writers struct {
	running sync.WaitGroup
	mu      sync.Mutex
	acked   map[uint64]string // payloads by sequence
}

// startWriters starts n writers. Each appends up to limit payloads, or until an append fails
// with lastErr; any other error fails the test.
func startWriters(t *testing.T, l *Log, n, limit int, lastErr error, payload func(writer, i int) string) *writers {
	t.Helper()
	w := &writers{acked: make(map[uint64]string)}
	for writer := range n {
		w.running.Go(func() {
			for i := range limit {
				p := payload(writer, i)
				seq, err := l.Append(context.Background(), []byte(p))
				if err != nil {
					if !errors.Is(err, lastErr) {
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

// fill appends n payloads of about 100 bytes, and returns them by sequence.
func fill(t testing.TB, l *Log, n int) map[uint64]string {
	t.Helper()
	stored := map[uint64]string{}
	for i := range n {
		p := fmt.Sprintf("payload %d of %d %s", i, n, strings.Repeat("x", 80))
		stored[mustAppend(t, l, p)] = p
	}
	return stored
}

// content returns the payloads of the log by sequence. The test fails if the sequences are not
// ascending.
func content(t testing.TB, l *Log) map[uint64]string {
	t.Helper()
	got, lastSeq := map[uint64]string{}, uint64(0)
	err := l.Range(context.Background(), 0, math.MaxUint64, func(r Record) error {
		if r.Seq <= lastSeq {
			t.Errorf("record %d follows record %d", r.Seq, lastSeq)
		}
		lastSeq, got[r.Seq] = r.Seq, string(r.Payload)
		return nil
	})
	relaytest.NoError(t, err)
	return got
}

// wantContent compares payloads by sequence.
func wantContent(t testing.TB, got, want map[uint64]string) {
	t.Helper()
	relaytest.Equal(t, "the records", got, want)
}

// wantGaps compares the first and last missing sequences of the gaps, and ends the test if
// they differ.
func wantGaps(t testing.TB, l *Log, want ...[2]uint64) {
	t.Helper()
	var got [][2]uint64
	for _, g := range l.Gaps() {
		got = append(got, [2]uint64{g.First, g.Last})
	}
	if diff := relaytest.Diff(got, want); diff != "" {
		t.Fatalf("missing sequences differ (-want +got):\n%s", diff)
	}
}

// exclude returns a copy of m without some sequences.
func exclude(m map[uint64]string, seqs ...uint64) map[uint64]string {
	remaining := map[uint64]string{}
	for seq, p := range m {
		if !slices.Contains(seqs, seq) {
			remaining[seq] = p
		}
	}
	return remaining
}

// segmentFiles returns the paths of the segments, oldest first.
func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	relaytest.NoError(t, err)
	return paths
}

// editFile replaces the content of a file by the result of change.
func editFile(t testing.TB, path string, change func([]byte) []byte) {
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
		t.Fatalf("error = %v, want %v", err, want)
	}
}

// newClock returns a clock that tests advance.
func newClock() *relaytest.Clock {
	return relaytest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC))
}

// faultyDisk is a disk whose operations return the errors in its fields.
type faultyDisk struct {
	osDisk
	mu                                                    sync.Mutex
	writeErr, syncErr, truncateErr, syncDirErr, createErr error
	partial                                               int // bytes written before a write fails
}

func (d *faultyDisk) set(change func(*faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *faultyDisk) get(field func(*faultyDisk) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return field(d)
}

func (d *faultyDisk) Open(path string, flag int) (file, error) {
	if err := d.get(func(d *faultyDisk) error { return d.createErr }); err != nil && flag&os.O_CREATE != 0 {
		return nil, err
	}
	f, err := d.osDisk.Open(path, flag)
	return faultyFile{f, d}, err
}

func (d *faultyDisk) SyncDir(dir string) error {
	if err := d.get(func(d *faultyDisk) error { return d.syncDirErr }); err != nil {
		return err
	}
	return d.osDisk.SyncDir(dir)
}

type faultyFile struct {
	file
	d *faultyDisk
}

func (f faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.d.get(func(d *faultyDisk) error { return d.writeErr }); err != nil {
		n, _ := f.file.WriteAt(b[:min(len(b), f.d.partial)], off)
		return n, err
	}
	return f.file.WriteAt(b, off)
}

func (f faultyFile) Datasync() error {
	if err := f.d.get(func(d *faultyDisk) error { return d.syncErr }); err != nil {
		return err
	}
	return f.file.Datasync()
}

func (f faultyFile) Truncate(n int64) error {
	if err := f.d.get(func(d *faultyDisk) error { return d.truncateErr }); err != nil {
		return err
	}
	return f.file.Truncate(n)
}
