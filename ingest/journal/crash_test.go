package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

const sector = 512

// crashDisk records writes that are not synced, so that tests can copy the directory in a
// state that a power failure may leave.
type crashDisk struct {
	osDisk
	mu       sync.Mutex
	unsynced map[string][]undo // by file name
	torn     int               // copies with a segment that was written and not synced
}

// undo holds the bytes that a write replaced.
type undo struct {
	off      int64
	replaced []byte
}

type crashFile struct {
	file
	d    *crashDisk
	name string
}

func (d *crashDisk) Open(path string, flag int) (file, error) {
	f, err := d.osDisk.Open(path, flag)
	return crashFile{f, d, strings.TrimSuffix(filepath.Base(path), ".new")}, err
}

func (f crashFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	replaced := make([]byte, len(b))
	_, _ = f.ReadAt(replaced, off) // zeros after the end of the file
	f.d.unsynced[f.name] = append(f.d.unsynced[f.name], undo{off, replaced})
	return f.file.WriteAt(b, off)
}

func (f crashFile) Datasync() error {
	err := f.file.Datasync() // a power failure may happen during the sync
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	delete(f.d.unsynced, f.name)
	return err
}

// copyAfterPowerFailure returns a copy of dir. In the copy, each sector that was not synced has
// its old or new content at random, and segments are truncated at random after the synced bytes.
func (d *crashDisk) copyAfterPowerFailure(t *testing.T, dir string, r *rand.Rand) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	copyDir := t.TempDir()
	relaytest.NoError(t, os.CopyFS(copyDir, os.DirFS(dir)))
	for name, undos := range d.unsynced {
		editFile(t, filepath.Join(copyDir, name), func(b []byte) []byte {
			for i := len(undos) - 1; i >= 0; i-- {
				revertSectors(b, undos[i], r)
			}
			if !strings.HasSuffix(name, segmentSuffix) {
				return b
			}
			d.torn++
			if synced := undos[0].off; r.IntN(2) == 0 {
				return b[:synced+r.Int64N(int64(len(b))-synced+1)]
			}
			return b
		})
	}
	return copyDir
}

// revertSectors restores random sectors of a write.
func revertSectors(b []byte, u undo, r *rand.Rand) {
	for off := u.off; off < u.off+int64(len(u.replaced)); {
		end := min((off/sector+1)*sector, u.off+int64(len(u.replaced)), int64(len(b)))
		if end <= off {
			return
		}
		if r.IntN(2) == 0 {
			copy(b[off:end], u.replaced[off-u.off:])
		}
		off = end
	}
}

// ackedRecords holds acknowledged payloads by sequence.
type ackedRecords struct {
	mu       sync.Mutex
	payloads map[uint64]string
}

func (a *ackedRecords) add(seq uint64, p string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.payloads[seq] = p
}

func (a *ackedRecords) snapshot() map[uint64]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.payloads)
}

func TestAPowerFailureLosesNoAcknowledgedRecord(t *testing.T) {
	dir, d := t.TempDir(), &crashDisk{unsynced: map[string][]undo{}}
	l := mustOpen(t, dir, Options{disk: d, segmentBytes: 32 << 10})
	c := mustConsumer(t, l, "c")
	records := &ackedRecords{payloads: map[uint64]string{}}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				p := fmt.Sprintf("%d/%d %s", w, i, strings.Repeat("c", i*97%2000))
				seq, err := l.Append(t.Context(), []byte(p))
				if err != nil {
					t.Error(err)
					return
				}
				records.add(seq, p)
				if err := c.Commit(seq / 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		acked := records.snapshot()
		copied := mustOpen(t, d.copyAfterPowerFailure(t, dir, r), Options{})
		verifyAcked(t, copied, acked)
		mustClose(t, copied)
	}
	close(stop)
	wg.Wait()
	if d.torn == 0 {
		t.Error("no copy was made between a write and its sync")
	}
	t.Logf("%d torn segments in 25 copies", d.torn)
}

// verifyAcked checks the content, the gaps, the checkpoint and the next sequence of a log.
func verifyAcked(t *testing.T, l *Log, acked map[uint64]string) {
	t.Helper()
	got, newest := content(t, l), uint64(0)
	for seq, p := range acked {
		newest = max(newest, seq)
		if got[seq] != p {
			t.Errorf("record %d = %.20q, want %.20q", seq, got[seq], p)
		}
	}
	for _, g := range l.Gaps() { // torn writes may leave gaps after the acknowledged records
		if g.First <= newest {
			t.Errorf("gap from %d to %d, want none up to %d", g.First, g.Last, newest)
		}
	}
	if seq := mustConsumer(t, l, "c").Committed(); seq > l.Stats().Last {
		t.Errorf("checkpoint = %d, want at most %d", seq, l.Stats().Last)
	}
	if seq := mustAppend(t, l, "after"); seq <= newest {
		t.Errorf("new sequence = %d, want above %d", seq, newest)
	}
}
