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

// small is a log whose segments hold five records of fill each.
func small(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	o.segmentBytes = 700
	return mustOpen(t, dir, o)
}

func TestRetentionByTime(t *testing.T) {
	for name, c := range map[string]struct {
		consumers []uint64 // what each has committed of 20 records
		after     time.Duration
		first     uint64 // the oldest record left, 0 for none
	}{
		"young records stay":                                       {[]uint64{20}, time.Hour, 1},
		"old processed records go, also the newest":                {[]uint64{20}, 3 * time.Hour, 0},
		"records that the slowest consumer has not committed stay": {[]uint64{20, 12}, 3 * time.Hour, 11},
		"a segment goes as a whole or not":                         {[]uint64{14}, 3 * time.Hour, 11},
		"a consumer that did nothing keeps all":                    {[]uint64{20, 0}, 3 * time.Hour, 1},
		"without consumers everything stays":                       {nil, 3 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			l := small(t, t.TempDir(), Options{Now: clk.Now, Retention: 2 * time.Hour})
			fill(t, l, 20)
			for i, seq := range c.consumers {
				relaytest.NoError(t, mustConsumer(t, l, string(rune('a'+i))).Commit(seq))
			}
			clk.Advance(c.after)
			l.sweep()
			if first := l.Stats().First; first != c.first {
				t.Errorf("first %d, want %d", first, c.first)
			}
			if _, err := l.Read(20); (err == nil) != (c.first > 0) {
				t.Errorf("the last record: %v", err)
			}
		})
	}
}

// A kind with little traffic never fills a segment.
func TestNoProcessedRecordIsOlderThanTheRetention(t *testing.T) {
	const retention = 100 * time.Hour
	dir, clk := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: clk.Now, Retention: retention})
	c := mustConsumer(t, l, "c")
	for hour := range 300 {
		if hour%3 == 0 {
			relaytest.NoError(t, c.Commit(mustAppend(t, l, "text")))
		}
		if hour == 150 { // the ages survive a restart
			mustClose(t, l)
			l = mustOpen(t, dir, Options{Now: clk.Now, Retention: retention})
			c = mustConsumer(t, l, "c")
		}
		l.sweep()
		oldest := relaytest.Must(l.Read(l.Stats().First))(t)
		if age := clk.Now().Sub(oldest.Time); age > retention || hour >= 100 && age < retention*85/100 {
			t.Fatalf("hour %d: the oldest record has the age %v, want 85h to 100h", hour, age)
		}
		clk.Advance(time.Hour)
	}
}

func TestNothingIsDeletedWhileKeepAllHolds(t *testing.T) {
	clk := newClock()
	var keep atomic.Bool // housekeeping reads it concurrently
	keep.Store(true)
	l := small(t, t.TempDir(), Options{Now: clk.Now, Retention: 2 * time.Hour, KeepAll: keep.Load})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(40 * 24 * time.Hour)
	for _, want := range []uint64{1, 0} {
		if l.sweep(); l.Stats().First != want {
			t.Errorf("first %d, want %d", l.Stats().First, want)
		}
		keep.Store(false)
	}
}

func TestSequencesGoOnWhenEverythingWasDeleted(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := small(t, dir, Options{Now: clk.Now})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(169 * time.Hour)
	l.sweep()
	st := l.Stats()
	relaytest.Equal(t, "the first sequence", st.First, 0)
	relaytest.Equal(t, "the last sequence", st.Last, 20)
	relaytest.Equal(t, "the bytes stored", st.Bytes, 0)
	relaytest.Equal(t, "the number of segments", len(segmentFiles(t, dir)), 1)
	mustClose(t, l)
	// The sequence does not depend on the checkpoint.
	relaytest.NoError(t, os.Remove(filepath.Join(dir, "c"+checkpointSuffix)))
	l = small(t, dir, Options{})
	if seq := mustAppend(t, l, "next"); seq != 21 {
		t.Errorf("sequence %d", seq)
	}
	wantGaps(t, l)
	wantNext(t, mustConsumer(t, l, "c"), 5, 21)
}

func TestAConsumerNotOpenedThisTimeStillHoldsItsRecords(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := small(t, dir, Options{})
	fill(t, l, 20)
	mustConsumer(t, l, "slow")
	mustClose(t, l)
	l = small(t, dir, Options{Now: clk.Now})
	relaytest.NoError(t, mustConsumer(t, l, "fast").Commit(20))
	clk.Advance(10 * 365 * 24 * time.Hour)
	l.sweep()
	relaytest.Equal(t, "the first sequence", l.Stats().First, 1)
}

func TestRetentionByBytes(t *testing.T) {
	l := small(t, t.TempDir(), Options{MaxBytes: 3000})
	c := mustConsumer(t, l, "c")
	var last uint64
	for {
		seq, err := l.Append(t.Context(), make([]byte, 100))
		if err != nil {
			wantErr(t, err, ErrFull)
			break
		}
		last = seq
	}
	st := l.Stats()
	relaytest.Equal(t, "the first sequence", st.First, 1)
	if st.Bytes > 3000 || st.Bytes < 2800 {
		t.Errorf("full with %d bytes, want 2800 to 3000", st.Bytes)
	}
	if err := c.Commit(7); err != nil { // one whole segment and two records
		t.Fatal(err)
	}
	for range 5 {
		if seq := mustAppend(t, l, string(make([]byte, 100))); seq != last+1 {
			t.Errorf("sequence %d after %d", seq, last)
		}
		last++
	}
	if first := l.Stats().First; first != 6 {
		t.Errorf("first %d: only the processed segment was to go", first)
	}
	_, err := l.Append(t.Context(), make([]byte, 100))
	wantErr(t, err, ErrFull)
}

func TestAQuotaSmallerThanASegmentStillMovesOn(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MaxBytes: 1000, segmentBytes: 16 << 20})
	c := mustConsumer(t, l, "c")
	for range 50 {
		relaytest.NoError(t, c.Commit(mustAppend(t, l, string(make([]byte, 300)))))
	}
}

func TestASegmentTakesAnEighthOfASmallQuota(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MaxBytes: 4 << 20})
	for range 20 {
		mustAppend(t, l, string(make([]byte, 100_000)))
	}
	mustClose(t, l)
	for _, path := range segmentFiles(t, dir) {
		if size := relaytest.Must(os.Stat(path))(t).Size(); size > 512<<10 {
			t.Errorf("%s has %d bytes, want at most 512 KiB", filepath.Base(path), size)
		}
	}
}

func TestSweepDeletesOldCopiesOfDamagedRanges(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	mustClose(t, mustOpen(t, dir, Options{}))
	edit(t, segmentFiles(t, dir)[0], func([]byte) []byte { return []byte("torn") })
	l := mustOpen(t, dir, Options{Now: clk.Now})
	count := func() int {
		bad, _ := filepath.Glob(filepath.Join(dir, "*"+damagedSuffix))
		return len(bad)
	}
	l.sweep()
	if count() != 1 {
		t.Errorf("%d copies", count())
	}
	clk.Advance(169 * time.Hour)
	l.sweep()
	if count() != 0 {
		t.Errorf("%d copies after the retention", count())
	}
}

func TestTheLogSweepsByItself(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := small(t, dir, Options{Retention: time.Hour})
		defer l.Close()
		fill(t, l, 20)
		c := mustConsumer(t, l, "c")
		relaytest.NoError(t, c.Commit(20))
		time.Sleep(2 * time.Hour) // the bubble's time
		synctest.Wait()
		if st := l.Stats(); st.First != 0 {
			t.Errorf("first %d", st.First)
		}
		if c.checkpoint.dirty {
			t.Error("the checkpoint was not synced")
		}
	})
}
