package journal

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestAcknowledgedRecordsAreStored(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	l := mustOpen(t, dir, Options{Now: clk.Now})
	payload := []byte("first")
	seq, err := l.Append(t.Context(), payload)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the first sequence", seq, 1)
	copy(payload, "XXXXX") // the log has a copy
	if seq := mustAppend(t, l, ""); seq != 2 {
		t.Fatalf("sequence = %d, want 2", seq)
	}
	for range 2 { // before and after a recovery
		rec, err := l.Read(1)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the first record", rec, Record{Seq: 1, Time: clk.Now(), Payload: []byte("first")})
		wantContent(t, content(t, l), map[uint64]string{1: "first", 2: ""})
		mustClose(t, l)
		l = mustOpen(t, dir, Options{})
	}
	if seq := mustAppend(t, l, "third"); seq != 3 {
		t.Errorf("sequence after reopening = %d, want 3", seq)
	}
}

func TestRecordsStagedInOrderAreStoredInOrder(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	want := make(map[uint64]string)
	var staged []Pending
	for i := range uint64(3000) {
		want[i+1] = fmt.Sprint("record ", i)
		p, err := l.Stage(t.Context(), []byte(want[i+1]))
		relaytest.NoError(t, err)
		staged = append(staged, p)
	}
	for i, p := range staged {
		seq, err := p.Wait(t.Context())
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the sequence of a staged record", seq, uint64(i)+1)
	}
	wantContent(t, content(t, l), want)
	canceledCtx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Stage(canceledCtx, nil)
	wantErr(t, err, context.Canceled)
	_, err = l.Stage(t.Context(), make([]byte, MaxPayload+1))
	wantErr(t, err, ErrTooLarge)
}

func TestAppendErrors(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	_, err := l.Append(t.Context(), make([]byte, MaxPayload+1))
	wantErr(t, err, ErrTooLarge)
	if _, err = l.Append(t.Context(), make([]byte, MaxPayload)); err != nil {
		t.Errorf("error of the largest payload = %v, want none", err)
	}
	canceledCtx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Append(canceledCtx, nil)
	wantErr(t, err, context.Canceled)
	mustClose(t, l)
	_, err = l.Append(t.Context(), nil)
	wantErr(t, err, ErrClosed)
	wantErr(t, l.Close(), ErrClosed)
}

func TestConcurrentAppendersShareCommits(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 64 << 10})
	const writers, perWriter = 32, 50
	want := startWriters(t, l, writers, perWriter, nil, func(w, i int) string {
		return fmt.Sprintf("%d/%d %s", w, i, bytes.Repeat([]byte("y"), 100))
	}).wait()
	wantContent(t, content(t, l), want)
	st := l.Stats()
	relaytest.Equal(t, "the number of appends", st.Appends, writers*perWriter)
	relaytest.Equal(t, "the last sequence", st.Last, writers*perWriter)
	if st.Fsyncs >= st.Appends/2 {
		t.Errorf("commits = %d for %d appends, want fewer than half", st.Fsyncs, st.Appends)
	}
	if n := len(segmentFiles(t, l.dir)); n < 2 {
		t.Errorf("segments = %d, want at least 2", n)
	}
}

func TestRecordsAboveTheBatchSizeAreCommittedLater(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	payload := make([]byte, 1<<20)
	var wg sync.WaitGroup
	for range 12 { // three times the maximum batch
		wg.Go(func() {
			if _, err := l.Append(t.Context(), payload); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st := l.Stats()
	relaytest.Equal(t, "the last sequence", st.Last, 12)
	if st.Fsyncs < 3 {
		t.Errorf("commits = %d, want at least 3", st.Fsyncs)
	}
}

// In a synctest bubble time advances only while all goroutines wait, so any wait is measured.
func TestASingleAppenderDoesNotWaitForTheCommitWindow(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir, Options{CommitWindow: time.Hour})
		begin := time.Now()
		fill(t, l, 10)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("waited %v, want no wait", waited)
		}
		mustClose(t, l)
	})
}

// expectAppenders makes the log expect n appenders, as after a batch of n records.
func expectAppenders(l *Log, n int) {
	l.staging.Lock()
	defer l.staging.Unlock()
	l.lastCount, l.takenAt = n, time.Now()
}

func TestACommitWaitsUpToTheWindowForExpectedAppenders(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir, Options{CommitWindow: time.Minute})
		expectAppenders(l, 2)
		begin := time.Now()
		mustAppend(t, l, "the second appender is missing")
		if waited := time.Since(begin); waited != time.Minute {
			t.Errorf("waited %v, want 1m", waited)
		}
		mustAppend(t, l, "one appender is expected")
		if waited := time.Since(begin); waited != time.Minute {
			t.Errorf("the second append waited %v, want no wait", waited-time.Minute)
		}
		mustClose(t, l)
	})
}

func TestAppendersOfAnOldBatchAreNotExpected(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := mustOpen(t, dir, Options{CommitWindow: time.Second})
		expectAppenders(l, 64)
		time.Sleep(time.Hour) // the bubble's time
		begin := time.Now()
		mustAppend(t, l, "alone")
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("waited %v, want no wait", waited)
		}
		mustClose(t, l)
	})
}

func TestACanceledAppendLeavesAnIntactRecord(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	l.writing.Lock() // the commit blocks
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := l.Append(ctx, []byte("abandoned"))
		done <- err
	}()
	for staged := 0; staged == 0; {
		l.staging.Lock()
		staged = l.pending.n + l.lastCount
		l.staging.Unlock()
	}
	cancel()
	wantErr(t, <-done, context.Canceled)
	l.writing.Unlock()
	mustClose(t, l) // waits for the pending append
	wantContent(t, content(t, mustOpen(t, dir, Options{})), map[uint64]string{1: "abandoned"})
}

func TestCloseWaitsForPendingAppends(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	writers := startWriters(t, l, 8, math.MaxInt, ErrClosed, func(w, _ int) string { return fmt.Sprint("writer ", w) })
	c := mustConsumer(t, l, "c")
	for count := 0; count < 200; {
		recs, err := c.Next(t.Context(), 100)
		relaytest.NoError(t, err)
		count += len(recs)
	}
	mustClose(t, l)
	want := writers.wait()
	wantContent(t, content(t, mustOpen(t, dir, Options{})), want)
}

func TestCloseFreesReservedSpace(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	mustAppend(t, l, "small")
	mustClose(t, l)
	info, err := os.Stat(segmentFiles(t, dir)[0])
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the size of the segment", info.Size(), headerSize+5)
}
