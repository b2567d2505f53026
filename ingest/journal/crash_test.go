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

// crashDisk records the writes that are not synced, so that the directory can be copied in a
// state that a power failure could leave.
type crashDisk struct {
	osDisk
	mu       sync.Mutex
	unsynced map[string][]undo // by file name
	torn     int               // cuts that found a segment written and not synced
}

// undo has the bytes that a write replaced.
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
	_, _ = f.ReadAt(replaced, off) // zeros behind the end of the file
	f.d.unsynced[f.name] = append(f.d.unsynced[f.name], undo{off, replaced})
	return f.file.WriteAt(b, off)
}

func (f crashFile) Datasync() error {
	err := f.file.Datasync() // power cuts may come meanwhile
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	delete(f.d.unsynced, f.name)
	return err
}

// cut copies dir. In the copy, each sector that was not synced is written or not at random,
// and a segment is cut or not at random behind its synced bytes.
func (d *crashDisk) cut(t *testing.T, dir string, r *rand.Rand) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	to := t.TempDir()
	relaytest.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	for name, undos := range d.unsynced {
		edit(t, filepath.Join(to, name), func(b []byte) []byte {
			for i := len(undos) - 1; i >= 0; i-- {
				revert(b, undos[i], r)
			}
			if !strings.HasSuffix(name, segmentSuffix) {
				return b
			}
			d.torn++
			if first := undos[0].off; r.IntN(2) == 0 {
				return b[:first+r.Int64N(int64(len(b))-first+1)]
			}
			return b
		})
	}
	return to
}

func revert(b []byte, u undo, r *rand.Rand) {
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

// ledger has the acknowledged records.
type ledger struct {
	mu    sync.Mutex
	acked map[uint64]string
}

func (k *ledger) add(seq uint64, p string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acked[seq] = p
}

func (k *ledger) snapshot() map[uint64]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.acked)
}

func TestAPowerCutAtAnyMomentLosesNothingAcknowledged(t *testing.T) {
	dir, d := t.TempDir(), &crashDisk{unsynced: map[string][]undo{}}
	l := mustOpen(t, dir, Options{disk: d, segmentBytes: 32 << 10})
	c := mustConsumer(t, l, "c")
	k := &ledger{acked: map[uint64]string{}}
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
				k.add(seq, p)
				if err := c.Commit(seq / 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		acked := k.snapshot()
		after := mustOpen(t, d.cut(t, dir, r), Options{})
		verifyCut(t, after, acked)
		mustClose(t, after)
	}
	close(stop)
	wg.Wait()
	if d.torn == 0 {
		t.Error("no cut came between a write and its sync")
	}
	t.Logf("%d of 25 cuts tore a commit", d.torn)
}

func verifyCut(t *testing.T, l *Log, acked map[uint64]string) {
	t.Helper()
	got, newest := content(t, l), uint64(0)
	for seq, p := range acked {
		newest = max(newest, seq)
		if got[seq] != p {
			t.Errorf("record %d: got %.20q, acknowledged %.20q", seq, got[seq], p)
		}
	}
	for _, g := range l.Gaps() { // torn writes may leave gaps, but only behind the acknowledged records
		if g.First <= newest {
			t.Errorf("a gap from %d to %d, acknowledged up to %d", g.First, g.Last, newest)
		}
	}
	if done := mustConsumer(t, l, "c").Committed(); done > l.Stats().Last {
		t.Errorf("checkpoint %d behind the last record %d", done, l.Stats().Last)
	}
	if seq := mustAppend(t, l, "after"); seq <= newest {
		t.Errorf("sequence %d given again", seq)
	}
}
