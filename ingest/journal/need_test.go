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

// needs maps sequences to the needs for their records.
type needs map[uint64]Need

// find returns the strongest need for a range.
func (n needs) find(firstSeq, lastSeq uint64) (need Need, err error) {
	for seq, recordNeed := range n {
		if seq >= firstSeq && seq <= lastSeq {
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
			l.refreshNeeds()
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

// A segment has five records. The quota has room for four segments and a part of a fifth.
func TestNeededSegmentsAreNotDeletedToMakeRoom(t *testing.T) {
	always := func(n Need) func(uint64, uint64) (Need, error) {
		return func(uint64, uint64) (Need, error) { return n, nil }
	}
	unavailable := func(uint64, uint64) (Need, error) { return NotNeeded, errors.New("down") }
	for name, tc := range map[string]struct {
		need     func(firstSeq, lastSeq uint64) (Need, error)
		stored   []uint64 // sequences
		deleted  []uint64
		appended int // of 100
	}{
		"no needs":                    {nil, nil, []uint64{1, 50}, 100},
		"a record for replay":         {needs{3: ForReplay}.find, []uint64{1, 5}, []uint64{6, 50}, 100},
		"a record to process":         {needs{3: ToProcess}.find, []uint64{1, 5}, []uint64{6, 50}, 100},
		"a record in a later segment": {needs{8: ForReplay}.find, []uint64{6, 10}, []uint64{5, 11, 50}, 100},
		"two records for replay":      {needs{3: ForReplay, 8: ForReplay}.find, []uint64{1, 10}, []uint64{11, 50}, 100},
		"all records for replay":      {always(ForReplay), []uint64{100}, []uint64{1, 50}, 100},
		"the need is unavailable":     {unavailable, []uint64{1, 23}, nil, 23},
		"all records to process":      {always(ToProcess), []uint64{1, 23}, nil, 23},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openSmall(t, dir, Options{MaxBytes: 2900, Need: tc.need})
			stored := appendAll(t, l, mustConsumer(t, l, "c"), 100)
			if len(stored) != tc.appended {
				t.Fatalf("appended records = %d, want %d", len(stored), tc.appended)
			}
			for range 2 { // before and after a restart
				got := content(t, l)
				for _, seq := range tc.stored {
					if got[seq] != stored[seq] {
						t.Errorf("record %d = %q, want %q", seq, got[seq], stored[seq])
					}
				}
				for _, seq := range tc.deleted {
					if _, ok := got[seq]; ok {
						t.Errorf("record %d was not deleted", seq)
					}
				}
				wantGaps(t, l)
				mustClose(t, l)
				l = openSmall(t, dir, Options{MaxBytes: 2900, Need: tc.need})
			}
		})
	}
}

func TestRecordsToProcessAreKeptBeyondTheRetention(t *testing.T) {
	clk, needed := newClock(), needs{8: ToProcess}
	l := openSmall(t, t.TempDir(), Options{Now: clk.Now, Retention: time.Hour, Need: needed.find})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(2 * time.Hour)
	for _, want := range []uint64{6, 0} {
		if l.sweep(); l.Stats().First != want {
			t.Errorf("first sequence = %d, want %d", l.Stats().First, want)
		}
		relaytest.Equal(t, "whether a record is needed", l.Stats().Needed > 0, want != 0)
		needed[8] = ForReplay
	}
}

func TestAnInterruptedDeletionLeavesNoGap(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := openSmall(t, dir, Options{Now: clk.Now})
	stored := fill(t, l, 20)
	mustClose(t, l)
	path := segmentFiles(t, dir)[1]
	for _, name := range []string{path + droppedSuffix, segmentFiles(t, dir)[2] + droppedSuffix} { // the third segment still exists
		relaytest.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	relaytest.NoError(t, os.Remove(path))
	var log strings.Builder
	l = openSmall(t, dir, Options{Now: clk.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for seq := uint64(6); seq <= 10; seq++ {
		delete(stored, seq)
	}
	wantContent(t, content(t, l), stored)
	wantGaps(t, l)
	relaytest.Equal(t, "the log", log.String(), "")
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(200 * time.Hour)
	l.sweep()
	if names, _ := filepath.Glob(filepath.Join(dir, "*"+droppedSuffix)); len(names) > 0 {
		t.Errorf("saved names of deleted segments = %q, want none", names)
	}
}

// While the database is down, a full journal deletes segments by the last answers of Need.
func TestTheLastNeedAppliesWhileNeedFails(t *testing.T) {
	var down atomic.Bool
	need := func(firstSeq, _ uint64) (Need, error) {
		if down.Load() {
			return NotNeeded, errors.New("down")
		}
		if firstSeq == 1 {
			return ForReplay, nil
		}
		return NotNeeded, nil
	}
	l := openSmall(t, t.TempDir(), Options{MaxBytes: 2900, Need: need})
	c := mustConsumer(t, l, "c")
	appendAll(t, l, c, 20)
	l.refreshNeeds()
	down.Store(true)
	if stored := appendAll(t, l, c, 10); len(stored) != 10 {
		t.Errorf("records appended while Need fails = %d, want 10", len(stored))
	}
	if _, err := l.Read(1); err != nil {
		t.Errorf("reading record 1 while Need fails: %v", err)
	}
}

// Range may skip the remaining records of a segment that is deleted while it is read.
func TestRangeContinuesAfterTheDeletionOfASegment(t *testing.T) {
	l := openSmall(t, t.TempDir(), Options{Need: needs{3: ForReplay}.find})
	stored := fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	l.refreshNeeds()
	var got int
	err := l.Range(t.Context(), 1, 20, func(r Record) error {
		if r.Seq == 6 && !l.drop(math.MaxInt64, NotNeeded) {
			t.Error("no segment was deleted")
		}
		got++
		return nil
	})
	relaytest.NoError(t, err)
	if got < len(stored)-4 {
		t.Errorf("records read = %d, want at least %d", got, len(stored)-4)
	}
}
