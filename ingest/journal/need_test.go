package journal

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// needs has the need for records by sequence.
type needs map[uint64]Need

func (n needs) find(first, last uint64) (need Need, err error) {
	for seq, recordNeed := range n {
		if seq >= first && seq <= last {
			need = max(need, recordNeed)
		}
	}
	return need, nil
}

// appendAll appends and commits up to limit records, until the log is full, and returns them
// by sequence.
func appendAll(t *testing.T, l *Log, c *Consumer, limit int) map[uint64]string {
	t.Helper()
	stored := make(map[uint64]string)
	for range limit {
		payload := strings.Repeat("x", 100)
		seq, err := l.Append(t.Context(), []byte(payload))
		if err != nil {
			l.judge()
			seq, err = l.Append(t.Context(), []byte(payload))
		}
		if err != nil {
			wantErr(t, err, ErrFull)
			break
		}
		stored[seq] = payload
		relaytest.NoError(t, c.Commit(seq))
	}
	return stored
}

// A segment has five records; the quota has room for four segments and a part of one.
func TestNeededSegmentsAreNotDeletedToMakeRoom(t *testing.T) {
	all := func(n Need) func(uint64, uint64) (Need, error) {
		return func(uint64, uint64) (Need, error) { return n, nil }
	}
	unknown := func(uint64, uint64) (Need, error) { return NotNeeded, errors.New("down") }
	for name, tc := range map[string]struct {
		need     func(first, last uint64) (Need, error)
		kept     []uint64 // records
		gone     []uint64
		appended int // of 100
	}{
		"nothing":             {nil, nil, []uint64{1, 50}, 100},
		"one to be replayed":  {needs{3: ForReplay}.find, []uint64{1, 5}, []uint64{6, 50}, 100},
		"one to be processed": {needs{3: ToProcess}.find, []uint64{1, 5}, []uint64{6, 50}, 100},
		"one between others":  {needs{8: ForReplay}.find, []uint64{6, 10}, []uint64{5, 11, 50}, 100},
		"some to be replayed": {needs{3: ForReplay, 8: ForReplay}.find, []uint64{1, 10}, []uint64{11, 50}, 100},
		"all to be replayed":  {all(ForReplay), []uint64{100}, []uint64{1, 50}, 100},
		"not known yet":       {unknown, []uint64{1, 23}, nil, 23},
		"all to be processed": {all(ToProcess), []uint64{1, 23}, nil, 23},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := small(t, dir, Options{MaxBytes: 2900, Need: tc.need})
			stored := appendAll(t, l, mustConsumer(t, l, "c"), 100)
			if len(stored) != tc.appended {
				t.Fatalf("%d appended, want %d", len(stored), tc.appended)
			}
			for range 2 { // and once more after a start
				got := content(t, l)
				for _, seq := range tc.kept {
					if got[seq] != stored[seq] {
						t.Errorf("record %d is %q", seq, got[seq])
					}
				}
				for _, seq := range tc.gone {
					if _, there := got[seq]; there {
						t.Errorf("record %d is there", seq)
					}
				}
				wantGaps(t, l)
				mustClose(t, l)
				l = small(t, dir, Options{MaxBytes: 2900, Need: tc.need})
			}
		})
	}
}

func TestRecordsToBeProcessedAreNotTooOld(t *testing.T) {
	clk, needed := newClock(), needs{8: ToProcess}
	l := small(t, t.TempDir(), Options{Now: clk.Now, Retention: time.Hour, Need: needed.find})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(2 * time.Hour)
	for _, want := range []uint64{6, 0} {
		if l.sweep(); l.Stats().First != want {
			t.Errorf("first %d, want %d", l.Stats().First, want)
		}
		needed[8] = ForReplay
	}
}

func TestAnInterruptedDeletionLeavesNoGap(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := small(t, dir, Options{Now: clk.Now})
	stored := fill(t, l, 20)
	mustClose(t, l)
	second := segmentFiles(t, dir)[1]
	for _, name := range []string{second + droppedSuffix, segmentFiles(t, dir)[2] + droppedSuffix} { // the third is still there
		relaytest.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	relaytest.NoError(t, os.Remove(second))
	var log strings.Builder
	l = small(t, dir, Options{Now: clk.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for seq := uint64(6); seq <= 10; seq++ {
		delete(stored, seq)
	}
	sameContent(t, content(t, l), stored)
	wantGaps(t, l)
	relaytest.Equal(t, "the log", log.String(), "")
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(200 * time.Hour)
	l.sweep()
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+droppedSuffix)); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// While the database is down, a full journal accepts the same records as before.
func TestTheLastKnownNeedAppliesWhileItIsUnavailable(t *testing.T) {
	var down atomic.Bool
	need := func(first, _ uint64) (Need, error) {
		if down.Load() {
			return NotNeeded, errors.New("down")
		}
		if first == 1 {
			return ForReplay, nil
		}
		return NotNeeded, nil
	}
	l := small(t, t.TempDir(), Options{MaxBytes: 2900, Need: need})
	c := mustConsumer(t, l, "c")
	appendAll(t, l, c, 20)
	l.judge()
	down.Store(true)
	if stored := appendAll(t, l, c, 10); len(stored) != 10 {
		t.Errorf("%d records were appended while the need was unavailable, want all 10", len(stored))
	}
	if _, err := l.Read(1); err != nil {
		t.Error(err)
	}
}

// A reader skips the rest of a segment that is deleted while it reads.
func TestReadingWhileASegmentIsDeleted(t *testing.T) {
	l := small(t, t.TempDir(), Options{Need: needs{3: ForReplay}.find})
	stored := fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	l.judge()
	var got int
	err := l.Range(t.Context(), 1, 20, func(r Record) error {
		if r.Seq == 6 && !l.drop(math.MaxInt64, NotNeeded) {
			t.Error("nothing was deleted")
		}
		got++
		return nil
	})
	relaytest.NoError(t, err)
	if got < len(stored)-4 {
		t.Errorf("%d records were read, want at least %d", got, len(stored)-4)
	}
}
