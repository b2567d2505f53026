package journal

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// openSmall opens a log with segments of five records of fill.
func openSmall(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	o.segmentBytes = 700
	return mustOpen(t, dir, o)
}

func TestOldProcessedSegmentsAreDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		checkpoints []uint64 // of the consumers; the log has 20 records
		age         time.Duration
		firstSeq    uint64 // the oldest remaining record; 0 for none
	}{
		"recent records are kept":                            {[]uint64{20}, time.Hour, 1},
		"old processed records are deleted":                  {[]uint64{20}, 3 * time.Hour, 0},
		"records that a consumer has not committed are kept": {[]uint64{20, 12}, 3 * time.Hour, 11},
		"a partly processed segment is kept":                 {[]uint64{14}, 3 * time.Hour, 11},
		"a consumer without a commit keeps all records":      {[]uint64{20, 0}, 3 * time.Hour, 1},
		"without consumers all records are kept":             {nil, 3 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			l := openSmall(t, t.TempDir(), Options{Now: clk.Now, Retention: 2 * time.Hour})
			fill(t, l, 20)
			for i, seq := range c.checkpoints {
				relaytest.NoError(t, mustConsumer(t, l, string(rune('a'+i))).Commit(seq))
			}
			clk.Advance(c.age)
			l.sweep()
			if firstSeq := l.Stats().First; firstSeq != c.firstSeq {
				t.Errorf("first sequence = %d, want %d", firstSeq, c.firstSeq)
			}
			if _, err := l.Read(20); (err == nil) != (c.firstSeq > 0) {
				t.Errorf("error of reading the last record = %v, want an error = %t", err, c.firstSeq == 0)
			}
		})
	}
}

// With little traffic, no segment reaches its maximum size.
func TestNoProcessedRecordIsOlderThanTheRetention(t *testing.T) {
	const retention = 100 * time.Hour
	dir, clk := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: clk.Now, Retention: retention})
	c := mustConsumer(t, l, "c")
	for hour := range 300 {
		if hour%3 == 0 {
			relaytest.NoError(t, c.Commit(mustAppend(t, l, "text")))
		}
		if hour == 150 { // recovery restores the ages
			mustClose(t, l)
			l = mustOpen(t, dir, Options{Now: clk.Now, Retention: retention})
			c = mustConsumer(t, l, "c")
		}
		l.sweep()
		oldest := relaytest.Must(l.Read(l.Stats().First))(t)
		if age := clk.Now().Sub(oldest.Time); age > retention || hour >= 100 && age < retention*85/100 {
			t.Fatalf("hour %d: age of the oldest record = %v, want 85h to 100h", hour, age)
		}
		clk.Advance(time.Hour)
	}
}

func TestNoSegmentIsDeletedWhileKeepAllReturnsTrue(t *testing.T) {
	clk := newClock()
	var keepAll atomic.Bool // housekeeping reads it concurrently
	keepAll.Store(true)
	l := openSmall(t, t.TempDir(), Options{Now: clk.Now, Retention: 2 * time.Hour, KeepAll: keepAll.Load})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(40 * 24 * time.Hour)
	for _, want := range []uint64{1, 0} {
		if l.sweep(); l.Stats().First != want {
			t.Errorf("first sequence = %d, want %d", l.Stats().First, want)
		}
		keepAll.Store(false)
	}
}

func TestSequencesContinueAfterAllRecordsAreDeleted(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := openSmall(t, dir, Options{Now: clk.Now})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(169 * time.Hour)
	l.sweep()
	st := l.Stats()
	relaytest.Equal(t, "the first sequence", st.First, 0)
	relaytest.Equal(t, "the last sequence", st.Last, 20)
	relaytest.Equal(t, "the size of the segments", st.Bytes, 0)
	relaytest.Equal(t, "the number of segments", len(segmentFiles(t, dir)), 1)
	mustClose(t, l)
	// The sequence does not depend on the checkpoint.
	relaytest.NoError(t, os.Remove(filepath.Join(dir, "c"+checkpointSuffix)))
	l = openSmall(t, dir, Options{})
	if seq := mustAppend(t, l, "next"); seq != 21 {
		t.Errorf("sequence = %d, want 21", seq)
	}
	wantGaps(t, l)
	wantNext(t, mustConsumer(t, l, "c"), 5, 21)
}

func TestAConsumerThatIsNotOpenKeepsItsRecords(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := openSmall(t, dir, Options{})
	fill(t, l, 20)
	mustConsumer(t, l, "slow")
	mustClose(t, l)
	l = openSmall(t, dir, Options{Now: clk.Now})
	relaytest.NoError(t, mustConsumer(t, l, "fast").Commit(20))
	clk.Advance(10 * 365 * 24 * time.Hour)
	l.sweep()
	relaytest.Equal(t, "the first sequence", l.Stats().First, 1)
}

func TestTheQuotaDeletesProcessedSegmentsOnly(t *testing.T) {
	l := openSmall(t, t.TempDir(), Options{MaxBytes: 3000})
	c := mustConsumer(t, l, "c")
	var lastSeq uint64
	for {
		seq, err := l.Append(t.Context(), make([]byte, 100))
		if err != nil {
			wantErr(t, err, ErrFull)
			break
		}
		lastSeq = seq
	}
	st := l.Stats()
	relaytest.Equal(t, "the first sequence", st.First, 1)
	relaytest.Equal(t, "the needed size of the full log", st.Needed, st.Bytes)
	if st.Bytes > 3000 || st.Bytes < 2800 {
		t.Errorf("size of the full log = %d, want 2800 to 3000", st.Bytes)
	}
	if err := c.Commit(7); err != nil { // a segment and two records
		t.Fatal(err)
	}
	for range 5 {
		if seq := mustAppend(t, l, string(make([]byte, 100))); seq != lastSeq+1 {
			t.Errorf("sequence = %d, want %d", seq, lastSeq+1)
		}
		lastSeq++
	}
	if firstSeq := l.Stats().First; firstSeq != 6 {
		t.Errorf("first sequence = %d, want 6", firstSeq)
	}
	_, err := l.Append(t.Context(), make([]byte, 100))
	wantErr(t, err, ErrFull)
	relaytest.NoError(t, c.Commit(lastSeq))
	relaytest.Equal(t, "the needed size after all records are processed", l.Stats().Needed, 0)
}

func TestAQuotaBelowTheSegmentSizeAcceptsRecords(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MaxBytes: 1000, segmentBytes: 16 << 20})
	c := mustConsumer(t, l, "c")
	for range 50 {
		relaytest.NoError(t, c.Commit(mustAppend(t, l, string(make([]byte, 300)))))
	}
}

func TestTheSegmentSizeIsAnEighthOfASmallQuota(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MaxBytes: 4 << 20})
	for range 20 {
		mustAppend(t, l, string(make([]byte, 100_000)))
	}
	mustClose(t, l)
	for _, path := range segmentFiles(t, dir) {
		if size := relaytest.Must(os.Stat(path))(t).Size(); size > 512<<10 {
			t.Errorf("size of %s = %d bytes, want at most 512 KiB", filepath.Base(path), size)
		}
	}
}

func TestSweepDeletesOldCopiesOfDamagedRanges(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	mustClose(t, mustOpen(t, dir, Options{}))
	editFile(t, segmentFiles(t, dir)[0], func([]byte) []byte { return []byte("torn") })
	l := mustOpen(t, dir, Options{Now: clk.Now})
	count := func() int {
		bad, _ := filepath.Glob(filepath.Join(dir, "*"+damagedSuffix))
		return len(bad)
	}
	l.sweep()
	if count() != 1 {
		t.Errorf("copies = %d, want 1", count())
	}
	clk.Advance(169 * time.Hour)
	l.sweep()
	if count() != 0 {
		t.Errorf("copies after the retention = %d, want 0", count())
	}
}

func TestHousekeepingSweepsAndSyncsCheckpoints(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := openSmall(t, dir, Options{Retention: time.Hour})
		defer l.Close()
		fill(t, l, 20)
		c := mustConsumer(t, l, "c")
		relaytest.NoError(t, c.Commit(20))
		time.Sleep(2 * time.Hour) // the bubble's time
		synctest.Wait()
		if st := l.Stats(); st.First != 0 {
			t.Errorf("first sequence = %d, want 0", st.First)
		}
		if c.checkpoint.dirty {
			t.Error("the checkpoint was not synced")
		}
	})
}
