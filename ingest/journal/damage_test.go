package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestADamagedRecordIsSkippedAndReported(t *testing.T) {
	dir, stored, data, offs := newWrittenLog(t, 6)
	for name, c := range map[string]struct {
		off  int
		mask byte
	}{
		"a flipped bit in a payload":                  {offs[2] + 60, 1},
		"a flipped bit in the length, shorter":        {offs[2], 4},
		"a flipped bit in the length, longer":         {offs[2] + 1, 1},
		"a flipped bit in the length, past the limit": {offs[2] + 3, 0x80},
		"a flipped bit in the length, past the end":   {offs[2] + 2, 1},
		"a flipped bit in the checksum":               {offs[2] + 5, 2},
		"a flipped bit in the sequence":               {offs[2] + 8, 1},
		"a flipped bit in the time":                   {offs[2] + 17, 8},
	} {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(data)
			b[c.off] ^= c.mask
			dir := copySegment(t, dir, b)
			for range 2 { // the second recovery reports the same gap and copy
				l := mustOpen(t, dir, Options{})
				wantContent(t, content(t, l), exclude(stored, 3))
				wantGaps(t, l, [2]uint64{3, 3})
				g := l.Gaps()[0]
				relaytest.Equal(t, "the offset of the gap", g.Offset, int64(offs[2]))
				relaytest.Equal(t, "the length of the gap", g.Length, int64(offs[3]-offs[2]))
				if g.Reason == "" {
					t.Error("the gap has no reason")
				}
				bad, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.%d.bad", g.Segment, g.Offset)))
				relaytest.NoError(t, err)
				relaytest.Equal(t, "the copy of the damaged bytes", bad, b[offs[2]:offs[3]])
				_, err = l.Read(3)
				wantErr(t, err, ErrNotFound)
				mustClose(t, l)
			}
		})
	}
}

// newSegmentedLog returns the directory and records of a closed log with at least 4 segments.
func newSegmentedLog(t *testing.T, n int) (dir string, stored map[uint64]string) {
	t.Helper()
	dir = t.TempDir()
	l := mustOpen(t, dir, Options{segmentBytes: 1000})
	stored = fill(t, l, n)
	mustClose(t, l)
	if got := len(segmentFiles(t, dir)); got < 4 {
		t.Fatalf("segments = %d, want at least 4", got)
	}
	return dir, stored
}

func TestDamageAtTheEndOfAnOlderSegmentIsAGap(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"truncated inside the last record": func(b []byte) []byte { return b[:len(b)-10] },
		"truncated between records":        func(b []byte) []byte { n, _ := recordSize(b); return b[:n] },
		"a flipped bit in the last record": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"empty file":                       func([]byte) []byte { return nil },
		"only zeros":                       func(b []byte) []byte { clear(b); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir, stored := newSegmentedLog(t, 40)
			path := segmentFiles(t, dir)[1]
			damagedName, _ := parseSegmentName(filepath.Base(path))
			nextName, _ := parseSegmentName(filepath.Base(segmentFiles(t, dir)[2]))
			editFile(t, path, change)
			l := mustOpen(t, dir, Options{})
			gaps := l.Gaps()
			relaytest.Equal(t, "the number of gaps", len(gaps), 1)
			if len(gaps) != 1 {
				return
			}
			relaytest.Equal(t, "the last missing sequence", gaps[0].Last, nextName.firstSeq-1)
			if gaps[0].First < damagedName.firstSeq {
				t.Fatalf("gap from %d, want from %d or later", gaps[0].First, damagedName.firstSeq)
			}
			var lost []uint64
			for seq := gaps[0].First; seq <= gaps[0].Last; seq++ {
				lost = append(lost, seq)
			}
			wantContent(t, content(t, l), exclude(stored, lost...))
			if seq := mustAppend(t, l, "next"); seq != 41 {
				t.Errorf("sequence = %d, want 41", seq)
			}
		})
	}
}

func TestAMissingSegmentIsAGap(t *testing.T) {
	dir, _ := newSegmentedLog(t, 40)
	files := segmentFiles(t, dir)
	removed, _ := parseSegmentName(filepath.Base(files[1]))
	following, _ := parseSegmentName(filepath.Base(files[2]))
	relaytest.NoError(t, os.Remove(files[1]))
	l := mustOpen(t, dir, Options{})
	gaps := l.Gaps()
	wantGaps(t, l, [2]uint64{removed.firstSeq, following.firstSeq - 1})
	relaytest.Equal(t, "the length of the gap", gaps[0].Length, 0)
}

func TestSegmentsMissingAtACheckpointAreAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		checkpoint        uint64
		remove            func(files []string) []string
		firstSeq, lastSeq func(names []segmentName) uint64 // of the gap
	}{
		"the newest segment, processed": {40, func(files []string) []string { return files[len(files)-1:] },
			func(names []segmentName) uint64 { return names[len(names)-1].firstSeq }, func([]segmentName) uint64 { return 40 }},
		"all segments": {40, func(files []string) []string { return files },
			func([]segmentName) uint64 { return 1 }, func([]segmentName) uint64 { return 40 }},
		"the oldest segment, partly processed": {1, func(files []string) []string { return files[:1] },
			func([]segmentName) uint64 { return 2 }, func(names []segmentName) uint64 { return names[1].firstSeq - 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := newSegmentedLog(t, 40)
			l := mustOpen(t, dir, Options{})
			relaytest.NoError(t, mustConsumer(t, l, "c").Commit(tc.checkpoint))
			mustClose(t, l)
			var names []segmentName
			for _, file := range segmentFiles(t, dir) {
				name, _ := parseSegmentName(filepath.Base(file))
				names = append(names, name)
			}
			for _, file := range tc.remove(segmentFiles(t, dir)) {
				relaytest.NoError(t, os.Remove(file))
			}
			l = mustOpen(t, dir, Options{})
			wantGaps(t, l, [2]uint64{tc.firstSeq(names), tc.lastSeq(names)})
			relaytest.Equal(t, "the length of the gap", l.Gaps()[0].Length, 0)
		})
	}
}

func TestDamageWhileTheLogIsOpenIsSkippedAndReported(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	c := mustConsumer(t, l, "c")
	stored := fill(t, l, 5)
	rec, _ := l.Read(1)
	size := headerSize + len(rec.Payload)
	f, err := os.OpenFile(segmentFiles(t, dir)[0], os.O_RDWR, 0)
	relaytest.NoError(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("!!"), int64(2*size+50)); err != nil {
		t.Fatal(err)
	}
	got := map[uint64]string{}
	for len(got) < 4 {
		recs, err := c.Next(t.Context(), 2)
		relaytest.NoError(t, err)
		for _, r := range recs {
			got[r.Seq] = string(r.Payload)
		}
	}
	wantContent(t, got, exclude(stored, 3))
	wantGaps(t, l, [2]uint64{3, 3})
	// The last record is damaged as well: Next must wait for the next record.
	if _, err := f.WriteAt([]byte("!!"), int64(4*size+50)); err != nil {
		t.Fatal(err)
	}
	c.Rewind()
	recs, err := c.Next(t.Context(), 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of records after a rewind", len(recs), 3)
	shortCtx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = c.Next(shortCtx, 10)
	wantErr(t, err, context.DeadlineExceeded)
	relaytest.Equal(t, "the position of the waiting consumer", c.position(), 6)
	seq := mustAppend(t, l, "after")
	recs, err = c.Next(t.Context(), 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the next sequence", seq, 6)
	relaytest.Equal(t, "the sequences after the gap", sequences(recs), []uint64{6})
	mustClose(t, l)
	wantContent(t, content(t, mustOpen(t, dir, Options{})), map[uint64]string{1: stored[1], 2: stored[2], 4: stored[4], 6: "after"})
}

func TestARecordInsideAPayloadIsNotRead(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{})
	var forged []byte
	forged = appendRecord(forged, []byte("forged"), newClock().Now())
	numberRecords(forged, 2, 0, 0)
	mustAppend(t, l, "first")
	mustAppend(t, l, string(append(bytes.Repeat([]byte("z"), 100), forged...)))
	mustAppend(t, l, "third")
	mustClose(t, l)
	editFile(t, segmentFiles(t, dir)[0], func(b []byte) []byte { b[60] ^= 1; return b })
	wantContent(t, content(t, mustOpen(t, dir, Options{})), map[uint64]string{1: "first", 3: "third"})
}
