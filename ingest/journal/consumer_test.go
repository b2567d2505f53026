package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func sequences(recs []Record) (seqs []uint64) {
	for _, r := range recs {
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func wantNext(t *testing.T, c *Consumer, limit int, want ...uint64) {
	t.Helper()
	recs, err := c.Next(t.Context(), limit)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the sequences of the batch", sequences(recs), want)
}

func TestAConsumerReadsFromItsCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{segmentBytes: 300})
	fill(t, l, 6)
	c := mustConsumer(t, l, "c")
	wantNext(t, c, 2, 1, 2)
	wantNext(t, c, 0, 3) // a limit below 1 means 1
	relaytest.NoError(t, c.Commit(2))
	c.Rewind()
	wantNext(t, c, 10, 3, 4, 5, 6)
	relaytest.NoError(t, c.Commit(1))
	relaytest.Equal(t, "the checkpoint after a commit of a lower sequence", c.Committed(), 2)
	if err := c.Commit(7); err == nil {
		t.Error("no error for a commit above the last record")
	}
	mustClose(t, l)

	l = mustOpen(t, dir, Options{})
	c = mustConsumer(t, l, "c")
	if c.Committed() != 2 {
		t.Errorf("checkpoint = %d, want 2", c.Committed())
	}
	wantNext(t, c, 1, 3)
	relaytest.NoError(t, c.Commit(5))
	wantNext(t, c, 10, 6) // committed records are not returned
}

func TestRevertMovesTheCheckpointBack(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{segmentBytes: 300})
	fill(t, l, 6)
	c := mustConsumer(t, l, "c")
	relaytest.NoError(t, c.Commit(5), c.Revert(5), c.Revert(9))
	wantNext(t, c, 10, 6)
	relaytest.NoError(t, c.Revert(2))
	relaytest.Equal(t, "the checkpoint", c.Committed(), 2)
	wantNext(t, c, 2, 3, 4)
	mustClose(t, l)
	wantNext(t, mustConsumer(t, mustOpen(t, dir, Options{}), "c"), 10, 3, 4, 5, 6)
}

func TestConsumersAreIndependent(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	fill(t, l, 3)
	a, b := mustConsumer(t, l, "a"), mustConsumer(t, l, "b")
	wantNext(t, a, 10, 1, 2, 3)
	relaytest.NoError(t, a.Commit(3))
	wantNext(t, b, 10, 1, 2, 3)
	if _, err := l.Consumer("a"); err == nil {
		t.Error("no error for a consumer that is already open")
	}
	for _, name := range []string{"", "../x", "A", "-a", "a.b", "a/b", string(make([]byte, 65))} {
		if _, err := l.Consumer(name); err == nil {
			t.Errorf("no error for the name %q", name)
		}
	}
	relaytest.Equal(t, "the checkpoint of a", a.Committed(), 3)
	relaytest.Equal(t, "the checkpoint of b", b.Committed(), 0)
	mustClose(t, l)
	_, err := l.Consumer("c")
	wantErr(t, err, ErrClosed)
}

func TestNextBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *Log, cancel func()) error
		want error
	}{
		"until a record is appended": {func(l *Log, _ func()) error { _, err := l.Append(context.Background(), nil); return err }, nil},
		"until ctx is canceled":      {func(_ *Log, cancel func()) error { cancel(); return nil }, context.Canceled},
		"until the log is closed":    {func(l *Log, _ func()) error { return l.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				l := mustOpen(t, dir, Options{})
				cons := mustConsumer(t, l, "c")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var err error
				returned := false
				go func() {
					_, err = cons.Next(ctx, 10)
					returned = true
				}()
				synctest.Wait()
				if returned {
					t.Fatalf("Next returned on an empty log: %v", err)
				}
				relaytest.NoError(t, c.end(l, cancel))
				synctest.Wait()
				if !returned {
					t.Fatal("Next did not return")
				}
				if c.want != nil || err != nil {
					wantErr(t, err, c.want)
				}
				_ = l.Close()
			})
		})
	}
}

func TestNextLimitsTheBytesOfABatch(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	payload := make([]byte, 3<<20)
	for range 5 {
		if _, err := l.Append(t.Context(), payload); err != nil {
			t.Fatal(err)
		}
	}
	c := mustConsumer(t, l, "c")
	wantNext(t, c, 100, 1, 2)
	wantNext(t, c, 100, 3, 4)
	wantNext(t, c, 100, 5)
}

func TestARecordIsNotReadBeforeItIsDurable(t *testing.T) {
	d := &faultyDisk{}
	l := mustOpen(t, t.TempDir(), Options{disk: d})
	c := mustConsumer(t, l, "c")
	fill(t, l, 1)
	d.set(func(d *faultyDisk) { d.syncErr = errDisk })
	_, err := l.Append(t.Context(), []byte("written, not durable"))
	wantErr(t, err, errDisk)
	wantNext(t, c, 10, 1)
	_, err = l.Read(2)
	wantErr(t, err, ErrNotFound)
	shortCtx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = c.Next(shortCtx, 10)
	wantErr(t, err, context.DeadlineExceeded)
}

// Reads run concurrently with appends, retention and rotation.
func TestConcurrentReadersAndWriters(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 4 << 10, MaxBytes: 32 << 10})
	const writers, perWriter = 8, 80
	var writing, reading sync.WaitGroup
	done, progress := make(chan struct{}), make(chan struct{}, 1)
	c := mustConsumer(t, l, "c")
	for w := range writers {
		writing.Go(func() {
			for i := 0; i < perWriter; {
				if _, err := l.Append(t.Context(), fmt.Appendf(nil, "%d %d %0100d", w, i, i)); err == nil {
					i++
				} else {
					<-progress // the quota is full until the consumer commits
				}
			}
		})
	}
	reading.Go(func() {
		for wantSeq := uint64(1); wantSeq <= writers*perWriter; {
			recs, err := c.Next(t.Context(), 50)
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range recs {
				if r.Seq != wantSeq {
					t.Errorf("sequence = %d, want %d", r.Seq, wantSeq)
				}
				wantSeq++
			}
			if err := c.Commit(wantSeq - 1); err != nil {
				t.Error(err)
			}
			select {
			case progress <- struct{}{}:
			default:
			}
		}
		close(done)
	})
	for _, read := range []func() error{
		func() error { return l.Range(t.Context(), 1, 1<<40, func(Record) error { return nil }) },
		func() error { _, err := l.Before(t.Context(), 0, 100, 1<<20); return err },
		func() error { l.Stats(); l.sweep(); return nil },
	} {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := read(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	st := l.Stats()
	relaytest.Equal(t, "the number of gaps", st.Gaps, 0)
	relaytest.Equal(t, "the last sequence", st.Last, writers*perWriter)
	if st.First == 1 {
		t.Error("no segment was deleted")
	}
}

func TestCheckpointSlots(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   uint64
	}{
		"both slots intact":               {func(b []byte) []byte { return b }, 5},
		"newer slot torn":                 {func(b []byte) []byte { b[slotDistance+15] ^= 1; return b }, 4},
		"older slot torn":                 {func(b []byte) []byte { b[15] ^= 1; return b }, 5},
		"newer slot not written":          {func(b []byte) []byte { clear(b[slotDistance:]); return b }, 4},
		"both slots torn":                 {func(b []byte) []byte { b[3] ^= 1; b[slotDistance] ^= 1; return b }, 0},
		"truncated before the newer slot": {func(b []byte) []byte { return b[:slotDistance] }, 4},
		"truncated inside the newer slot": {func(b []byte) []byte { return b[:slotDistance+7] }, 4},
		"empty file":                      {func([]byte) []byte { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{})
			fill(t, l, 6)
			cons := mustConsumer(t, l, "c")
			for seq := range uint64(5) { // the slot of odd generations has sequence 5
				relaytest.NoError(t, cons.Commit(seq+1))
			}
			mustClose(t, l)
			editFile(t, filepath.Join(dir, "c"+checkpointSuffix), c.change)
			cons = mustConsumer(t, mustOpen(t, dir, Options{}), "c")
			if cons.Committed() != c.want {
				t.Errorf("committed %d, want %d", cons.Committed(), c.want)
			}
			recs, err := cons.Next(t.Context(), 1)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the sequences behind the checkpoint", sequences(recs), []uint64{c.want + 1})
			if err := cons.Commit(6); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPartlyCreatedCheckpointIsIgnored(t *testing.T) {
	dir := t.TempDir()
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, "c.checkpoint.new"), []byte("partial"), 0o600))
	l := mustOpen(t, dir, Options{})
	fill(t, l, 1)
	wantNext(t, mustConsumer(t, l, "c"), 1, 1)
}

func FuzzCheckpoint(f *testing.F) {
	var slot [slotSize]byte
	putSlot(slot[:], 3, 4)
	f.Add(slot[:])
	f.Add(append(make([]byte, slotDistance), slot[:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		gen, seq, ok := parseCheckpoint(b)
		if !ok {
			return
		}
		var slot [slotSize]byte
		putSlot(slot[:], gen, seq)
		if string(b[:min(len(b), slotSize)]) != string(slot[:]) && string(b[slotDistance:slotDistance+slotSize]) != string(slot[:]) {
			t.Errorf("no slot has generation %d and sequence %d", gen, seq)
		}
	})
}
