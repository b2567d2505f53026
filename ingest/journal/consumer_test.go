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

func TestAConsumerReadsOnFromItsCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{segmentBytes: 300})
	fill(t, l, 6)
	c := mustConsumer(t, l, "c")
	wantNext(t, c, 2, 1, 2)
	wantNext(t, c, 0, 3) // a limit under one is one
	relaytest.NoError(t, c.Commit(2))
	c.Rewind()
	wantNext(t, c, 10, 3, 4, 5, 6)
	relaytest.NoError(t, c.Commit(1))
	relaytest.Equal(t, "the checkpoint after a commit of less", c.Committed(), 2)
	if err := c.Commit(7); err == nil {
		t.Error("a sequence that does not exist was committed")
	}
	mustClose(t, l)

	l = mustOpen(t, dir, Options{})
	c = mustConsumer(t, l, "c")
	if c.Committed() != 2 {
		t.Errorf("committed %d", c.Committed())
	}
	wantNext(t, c, 1, 3)
	relaytest.NoError(t, c.Commit(5))
	wantNext(t, c, 10, 6) // committed records are not returned
}

func TestACheckpointIsReverted(t *testing.T) {
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

func TestConsumersAreIndependentAndOpenedOnce(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	fill(t, l, 3)
	a, b := mustConsumer(t, l, "a"), mustConsumer(t, l, "b")
	wantNext(t, a, 10, 1, 2, 3)
	relaytest.NoError(t, a.Commit(3))
	wantNext(t, b, 10, 1, 2, 3)
	if _, err := l.Consumer("a"); err == nil {
		t.Error("opened twice")
	}
	for _, name := range []string{"", "../x", "A", "-a", "a.b", "a/b", string(make([]byte, 65))} {
		if _, err := l.Consumer(name); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
	relaytest.Equal(t, "the checkpoint of a", a.Committed(), 3)
	relaytest.Equal(t, "the checkpoint of b", b.Committed(), 0)
	mustClose(t, l)
	_, err := l.Consumer("c")
	wantErr(t, err, ErrClosed)
}

func TestNextWaits(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *Log, cancel func()) error
		want error
	}{
		"until a record comes": {func(l *Log, _ func()) error { _, err := l.Append(context.Background(), nil); return err }, nil},
		"until its ctx ends":   {func(_ *Log, cancel func()) error { cancel(); return nil }, context.Canceled},
		"until the log closes": {func(l *Log, _ func()) error { return l.Close() }, ErrClosed},
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
					t.Fatalf("returned at once: %v", err)
				}
				relaytest.NoError(t, c.end(l, cancel))
				synctest.Wait()
				if !returned {
					t.Fatal("still waits")
				}
				if c.want != nil || err != nil {
					wantErr(t, err, c.want)
				}
				_ = l.Close()
			})
		})
	}
}

func TestNextBoundsTheBytesOfABatch(t *testing.T) {
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

func TestARecordIsNotSeenBeforeItIsDurable(t *testing.T) {
	d := &faultyDisk{}
	l := mustOpen(t, t.TempDir(), Options{disk: d})
	c := mustConsumer(t, l, "c")
	fill(t, l, 1)
	d.set(func(d *faultyDisk) { d.sync = errDisk })
	_, err := l.Append(t.Context(), []byte("written, not durable"))
	wantErr(t, err, errDisk)
	wantNext(t, c, 10, 1)
	_, err = l.Read(2)
	wantErr(t, err, ErrNotFound)
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = c.Next(ended, 10)
	wantErr(t, err, context.DeadlineExceeded)
}

// Readers of every kind run beside appenders, retention and rotation.
func TestReadersBesideTheWriter(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 4 << 10, MaxBytes: 32 << 10})
	const writers, each = 8, 80
	var appending, reading sync.WaitGroup
	done, progress := make(chan struct{}), make(chan struct{}, 1)
	c := mustConsumer(t, l, "c")
	for w := range writers {
		appending.Go(func() {
			for i := 0; i < each; {
				if _, err := l.Append(t.Context(), fmt.Appendf(nil, "%d %d %0100d", w, i, i)); err == nil {
					i++
				} else {
					<-progress // the quota is full until the consumer commits
				}
			}
		})
	}
	reading.Go(func() {
		for next := uint64(1); next <= writers*each; {
			recs, err := c.Next(t.Context(), 50)
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range recs {
				if r.Seq != next {
					t.Errorf("got %d, want %d", r.Seq, next)
				}
				next++
			}
			if err := c.Commit(next - 1); err != nil {
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
	appending.Wait()
	reading.Wait()
	st := l.Stats()
	relaytest.Equal(t, "the number of gaps", st.Gaps, 0)
	relaytest.Equal(t, "the last sequence", st.Last, writers*each)
	if st.First == 1 {
		t.Error("no segment was deleted")
	}
}

func TestCheckpointSlots(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   uint64
	}{
		"both intact":                  {func(b []byte) []byte { return b }, 5},
		"the newer torn":               {func(b []byte) []byte { b[slotDistance+15] ^= 1; return b }, 4},
		"the older torn":               {func(b []byte) []byte { b[15] ^= 1; return b }, 5},
		"the newer never reached disk": {func(b []byte) []byte { clear(b[slotDistance:]); return b }, 4},
		"both torn":                    {func(b []byte) []byte { b[3] ^= 1; b[slotDistance] ^= 1; return b }, 0},
		"cut before the newer":         {func(b []byte) []byte { return b[:slotDistance] }, 4},
		"cut inside the newer":         {func(b []byte) []byte { return b[:slotDistance+7] }, 4},
		"emptied":                      {func([]byte) []byte { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{})
			fill(t, l, 6)
			cons := mustConsumer(t, l, "c")
			for seq := range uint64(5) { // generation 5, the odd slot, holds sequence 5
				relaytest.NoError(t, cons.Commit(seq+1))
			}
			mustClose(t, l)
			edit(t, filepath.Join(dir, "c"+checkpointSuffix), c.change)
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

func TestAHalfCreatedCheckpointIsIgnored(t *testing.T) {
	dir := t.TempDir()
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, "c.checkpoint.new"), []byte("half"), 0o600))
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
		var again [slotSize]byte
		putSlot(again[:], gen, seq)
		if string(b[:min(len(b), slotSize)]) != string(again[:]) && string(b[slotDistance:slotDistance+slotSize]) != string(again[:]) {
			t.Errorf("generation %d and sequence %d are in no slot", gen, seq)
		}
	})
}
