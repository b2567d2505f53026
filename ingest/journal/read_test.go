package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadReturnsEveryRecord(t *testing.T) {
	for name, o := range map[string]Options{
		"in one segment":   {},
		"in many segments": {segmentBytes: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustOpen(t, t.TempDir(), o)
			for seq, p := range fill(t, l, 100) {
				rec, err := l.Read(seq)
				relaytest.NoError(t, err)
				relaytest.Equal(t, "the sequence", rec.Seq, seq)
				relaytest.Equal(t, "the payload", string(rec.Payload), p)
			}
			for _, seq := range []uint64{0, 101, 1 << 60} {
				_, err := l.Read(seq)
				wantErr(t, err, ErrNotFound)
			}
		})
	}
}

// hookDisk calls a function before it opens a segment for reading.
type hookDisk struct {
	osDisk
	beforeRead func()
}

func (d *hookDisk) Open(path string, flag int) (file, error) {
	if flag == os.O_RDONLY && d.beforeRead != nil {
		d.beforeRead()
	}
	return d.osDisk.Open(path, flag)
}

func TestARecordDeletedDuringReadIsNotFound(t *testing.T) {
	clk, d := newClock(), &hookDisk{}
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 1000, Now: clk.Now, disk: d})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(1000 * time.Hour)
	d.beforeRead = l.sweep
	_, err := l.Read(3)
	wantErr(t, err, ErrNotFound)
}

// newBulkLog returns a log of 300 records of 1,000 bytes, which has several segments with several
// index entries each.
func newBulkLog(t *testing.T) *Log {
	t.Helper()
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 150 << 10})
	for i := range 300 {
		mustAppend(t, l, fmt.Sprintf("%03d %s", i+1, strings.Repeat("b", 1000)))
	}
	return l
}

func TestRangeReturnsTheRecordsOfARange(t *testing.T) {
	l := newBulkLog(t)
	for name, c := range map[string]struct{ fromSeq, toSeq, firstSeq, lastSeq uint64 }{
		"all records":            {0, 1 << 60, 1, 300},
		"one record":             {77, 77, 77, 77},
		"several segments":       {100, 299, 100, 299},
		"beyond the last record": {290, 400, 290, 300},
		"after the last record":  {301, 400, 0, 0},
		"a reversed range":       {5, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			err := l.Range(t.Context(), c.fromSeq, c.toSeq, func(r Record) error {
				got = append(got, r.Seq)
				if !strings.HasPrefix(string(r.Payload), fmt.Sprintf("%03d ", r.Seq)) {
					t.Errorf("record %d = %.10q, want its sequence first", r.Seq, r.Payload)
				}
				return nil
			})
			relaytest.NoError(t, err)
			if c.firstSeq == 0 {
				if len(got) > 0 {
					t.Errorf("records = %v, want none", got)
				}
				return
			}
			if uint64(len(got)) != c.lastSeq-c.firstSeq+1 {
				t.Fatalf("records = %d, want %d", len(got), c.lastSeq-c.firstSeq+1)
			}
			relaytest.Equal(t, "the first record", got[0], c.firstSeq)
			relaytest.Equal(t, "the last record", got[len(got)-1], c.lastSeq)
		})
	}
}

func TestRangeStopsAtAnError(t *testing.T) {
	l := newBulkLog(t)
	stop := errors.New("stop")
	err := l.Range(t.Context(), 1, 300, func(r Record) error {
		if r.Seq == 3 {
			return stop
		}
		return nil
	})
	wantErr(t, err, stop)
	ctx, cancel := context.WithCancel(t.Context())
	err = l.Range(ctx, 1, 300, func(r Record) error {
		if r.Seq == 3 {
			cancel()
		} else if r.Seq > 3 {
			t.Errorf("Range read record %d after its context had ended", r.Seq)
		}
		return nil
	})
	wantErr(t, err, context.Canceled)
	if _, err := l.Before(ctx, 0, 1, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("error of Before = %v, want context.Canceled", err)
	}
}

func TestBeforeReturnsPagesNewestFirst(t *testing.T) {
	l := newBulkLog(t)
	for name, c := range map[string]struct{ limit, maxBytes, maxRecords int }{
		"limited by number":        {7, 1 << 20, 7},
		"limited by size":          {300, 1, 70}, // the records between two index entries
		"a single page":            {300, 1 << 20, 300},
		"limited by a larger size": {300, 100 << 10, 170},
	} {
		t.Run(name, func(t *testing.T) {
			want := uint64(300)
			for limitSeq := uint64(0); ; {
				page, err := l.Before(t.Context(), limitSeq, c.limit, c.maxBytes)
				relaytest.NoError(t, err)
				if len(page) == 0 {
					break
				}
				if len(page) > c.maxRecords {
					t.Errorf("records of a page = %d, want at most %d", len(page), c.maxRecords)
				}
				for _, r := range page {
					if r.Seq != want {
						t.Fatalf("sequence = %d, want %d", r.Seq, want)
					}
					want--
				}
				limitSeq = page[len(page)-1].Seq
			}
			if want != 0 {
				t.Errorf("last page ends above record %d, want record 1", want)
			}
		})
	}
	empty := mustOpen(t, t.TempDir(), Options{})
	page, err := empty.Before(t.Context(), 0, 7, 1<<20)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of records of an empty log", len(page), 0)
}
