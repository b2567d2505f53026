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

func TestReadFindsEveryRecord(t *testing.T) {
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

// lateDisk lets something happen just before a segment is opened for reading.
type lateDisk struct {
	osDisk
	before func()
}

func (d *lateDisk) Open(path string, flag int) (file, error) {
	if flag == os.O_RDONLY && d.before != nil {
		d.before()
	}
	return d.osDisk.Open(path, flag)
}

func TestARecordDeletedWhileItIsLookedUpIsNotFound(t *testing.T) {
	clk, d := newClock(), &lateDisk{}
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 1000, Now: clk.Now, disk: d})
	fill(t, l, 20)
	relaytest.NoError(t, mustConsumer(t, l, "c").Commit(20))
	clk.Advance(1000 * time.Hour)
	d.before = l.sweep
	_, err := l.Read(3)
	wantErr(t, err, ErrNotFound)
}

// bulk returns a log of 300 records of 1,000 bytes: several index entries in
// each of several segments.
func bulk(t *testing.T) *Log {
	t.Helper()
	l := mustOpen(t, t.TempDir(), Options{segmentBytes: 150 << 10})
	for i := range 300 {
		mustAppend(t, l, fmt.Sprintf("%03d %s", i+1, strings.Repeat("b", 1000)))
	}
	return l
}

func TestRange(t *testing.T) {
	l := bulk(t)
	for name, c := range map[string]struct{ from, to, first, last uint64 }{
		"everything":            {0, 1 << 60, 1, 300},
		"one record":            {77, 77, 77, 77},
		"over several segments": {100, 299, 100, 299},
		"past the end":          {290, 400, 290, 300},
		"behind the end":        {301, 400, 0, 0},
		"the wrong way round":   {5, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			err := l.Range(t.Context(), c.from, c.to, func(r Record) error {
				got = append(got, r.Seq)
				if !strings.HasPrefix(string(r.Payload), fmt.Sprintf("%03d ", r.Seq)) {
					t.Errorf("record %d holds %.10q", r.Seq, r.Payload)
				}
				return nil
			})
			relaytest.NoError(t, err)
			if c.first == 0 {
				if len(got) > 0 {
					t.Errorf("got %v", got)
				}
				return
			}
			if uint64(len(got)) != c.last-c.first+1 {
				t.Fatalf("%d records, want %d", len(got), c.last-c.first+1)
			}
			relaytest.Equal(t, "the first record", got[0], c.first)
			relaytest.Equal(t, "the last record", got[len(got)-1], c.last)
		})
	}
}

func TestRangeStops(t *testing.T) {
	l := bulk(t)
	stop := errors.New("enough")
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
		t.Errorf("before: %v", err)
	}
}

func TestBeforePagesThroughEverythingNewestFirst(t *testing.T) {
	l := bulk(t)
	for name, c := range map[string]struct{ limit, maxBytes, most int }{
		"by number":        {7, 1 << 20, 7},
		"by size":          {300, 1, 70}, // what is between two entries of the index
		"all at once":      {300, 1 << 20, 300},
		"in larger pieces": {300, 100 << 10, 170},
	} {
		t.Run(name, func(t *testing.T) {
			want := uint64(300)
			for before := uint64(0); ; {
				page, err := l.Before(t.Context(), before, c.limit, c.maxBytes)
				relaytest.NoError(t, err)
				if len(page) == 0 {
					break
				}
				if len(page) > c.most {
					t.Errorf("a page has %d records, want at most %d", len(page), c.most)
				}
				for _, r := range page {
					if r.Seq != want {
						t.Fatalf("got %d, want %d", r.Seq, want)
					}
					want--
				}
				before = page[len(page)-1].Seq
			}
			if want != 0 {
				t.Errorf("stopped above %d", want)
			}
		})
	}
	empty := mustOpen(t, t.TempDir(), Options{})
	page, err := empty.Before(t.Context(), 0, 7, 1<<20)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of records of an empty log", len(page), 0)
}
