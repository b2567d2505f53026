package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// newWrittenLog returns the directory and records of a closed log, the bytes of its only segment,
// and the offset of each record.
func newWrittenLog(t *testing.T, n int) (dir string, stored map[uint64]string, data []byte, offs []int) {
	t.Helper()
	dir = t.TempDir()
	l := mustOpen(t, dir, Options{})
	stored = fill(t, l, n)
	mustClose(t, l)
	data, err := os.ReadFile(segmentFiles(t, dir)[0])
	relaytest.NoError(t, err)
	for off := 0; off < len(data); {
		offs = append(offs, off)
		size, err := recordSize(data[off:])
		relaytest.NoError(t, err)
		off += size
	}
	return dir, stored, data, offs
}

// copySegment returns a new directory with a segment named like the first of srcDir.
func copySegment(t *testing.T, srcDir string, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.Base(segmentFiles(t, srcDir)[0]))
	relaytest.NoError(t, os.WriteFile(path, data, 0o640))
	return dir
}

// checkReopened checks that the log has exactly the records want, that the sequence of the next
// record is above usedSeq, and that the log has all these records after another restart.
func checkReopened(t *testing.T, dir string, want map[uint64]string, usedSeq uint64) {
	t.Helper()
	l := mustOpen(t, dir, Options{})
	wantContent(t, content(t, l), want)
	seq := mustAppend(t, l, "after")
	if seq <= usedSeq {
		t.Errorf("new sequence = %d, want above %d", seq, usedSeq)
	}
	mustClose(t, l)
	l = mustOpen(t, dir, Options{})
	want = maps.Clone(want)
	want[seq] = "after"
	wantContent(t, content(t, l), want)
	wantGaps(t, l)
	mustClose(t, l)
}

func TestATruncatedLastRecordIsTheOnlyOneLost(t *testing.T) {
	dir, stored, data, offs := newWrittenLog(t, 4)
	for end := offs[3]; end < len(data); end++ {
		t.Run(fmt.Sprint(end-offs[3], " bytes"), func(t *testing.T) {
			usedSeq := uint64(4)
			if end == offs[3] {
				usedSeq = 3 // no byte of record 4 remains
			}
			checkReopened(t, copySegment(t, dir, data[:end]), exclude(stored, 4), usedSeq)
		})
	}
}

func TestRecordsBeforeAnInvalidTailAreKept(t *testing.T) {
	dir, stored, data, offs := newWrittenLog(t, 4)
	garbage := bytes.Repeat([]byte("\xffgarbage\x00"), 1000)
	flip := func(off int) []byte {
		b := bytes.Clone(data)
		b[off] ^= 0x10
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		lost []uint64
	}{
		"zeros appended":                      {append(bytes.Clone(data), make([]byte, 1<<20)...), nil},
		"garbage appended":                    {append(bytes.Clone(data), garbage...), nil},
		"one byte appended":                   {append(bytes.Clone(data), 7), nil},
		"the last record zeroed":              {append(bytes.Clone(data[:offs[3]]), make([]byte, 200)...), []uint64{4}},
		"the last record replaced by garbage": {append(bytes.Clone(data[:offs[3]]), garbage...), []uint64{4}},
		"a bit flipped in the last payload":   {flip(len(data) - 5), []uint64{4}},
		"a bit flipped in the last length":    {flip(offs[3] + 1), []uint64{4}},
		"a bit flipped in the last sequence":  {flip(offs[3] + 8), []uint64{4}},
		"a bit flipped in the last time":      {flip(offs[3] + 20), []uint64{4}},
		"a bit flipped in the last checksum":  {flip(offs[3] + 4), []uint64{4}},
		"the whole segment zeroed":            {make([]byte, len(data)), []uint64{1, 2, 3, 4}},
		"an old record repeated":              {append(bytes.Clone(data), data[:offs[1]]...), nil},
		"a sector of the last record zeroed":  {append(append(bytes.Clone(data[:offs[3]+50]), make([]byte, 40)...), data[offs[3]+90:]...), []uint64{4}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copySegment(t, dir, c.data)
			checkReopened(t, dir, exclude(stored, c.lost...), 4)
		})
	}
}

func TestATruncatedTailIsSavedUnlessItIsZero(t *testing.T) {
	dir, _, data, _ := newWrittenLog(t, 2)
	for name, c := range map[string]struct {
		tail   []byte
		copies int
	}{"garbage": {[]byte("abc"), 1}, "zeros": {make([]byte, 3), 0}} {
		t.Run(name, func(t *testing.T) {
			dir := copySegment(t, dir, append(bytes.Clone(data), c.tail...))
			l := mustOpen(t, dir, Options{})
			relaytest.Equal(t, "the number of truncated bytes", l.Stats().Cut, 3)
			wantGaps(t, l)
			bad, _ := filepath.Glob(filepath.Join(dir, "*"+damagedSuffix))
			if len(bad) != c.copies {
				t.Errorf("saved tails = %v, want %d", bad, c.copies)
			}
		})
	}
}

func TestSequencesUpToTheCheckpointAreNotReused(t *testing.T) {
	dir, _, _, offs := newWrittenLog(t, 4)
	l := mustOpen(t, dir, Options{})
	c := mustConsumer(t, l, "c")
	relaytest.NoError(t, c.Commit(4))
	mustClose(t, l)
	editFile(t, segmentFiles(t, dir)[0], func(b []byte) []byte { return b[:offs[2]] })
	l = mustOpen(t, dir, Options{})
	if seq := mustAppend(t, l, "new"); seq != 5 {
		t.Fatalf("sequence = %d, want 5", seq)
	}
	recs, err := mustConsumer(t, l, "c").Next(t.Context(), 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the sequences read", sequences(recs), []uint64{5})
	for _, rec := range recs {
		relaytest.Equal(t, "the payload", string(rec.Payload), "new")
	}
}

func TestAnInterruptedRecoveryIsCompleted(t *testing.T) {
	dir, stored, _, _ := newWrittenLog(t, 3)
	editFile(t, segmentFiles(t, dir)[0], func(b []byte) []byte { return append(b, "torn"...) })
	// The process was stopped after the creation of the next segment, before the tail was cut.
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, newSegmentName(5, 3).String()), nil, 0o640))
	checkReopened(t, dir, stored, 4)
}

func TestSegmentsWithInvalidNamesAreRefused(t *testing.T) {
	for name, file := range map[string]string{
		"an unknown version":                    "00000000000000000001-00000000000000000000-00000000.v2.segment",
		"no salt":                               "00000000000000000001-00000000000000000000.v1.segment",
		"sequence zero":                         "00000000000000000000-00000000000000000000-00000000.v1.segment",
		"a previous sequence that is not lower": "00000000000000000005-00000000000000000005-00000000.v1.segment",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o640))
			if l, err := Open(dir, Options{Logger: discardLogger()}); err == nil {
				mustClose(t, l)
				t.Error("no error")
			}
			_, err := Open(dir, Options{Logger: discardLogger()})
			if err == nil {
				t.Error("no error of the second attempt")
			}
			if errors.Is(err, ErrLocked) {
				t.Errorf("error of the second attempt = %v, want the lock released", err)
			}
		})
	}
}

func TestAnEmptyDuplicateSegmentIsRemoved(t *testing.T) {
	dir, stored, _, _ := newWrittenLog(t, 3)
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, newSegmentName(1, 0).String()), nil, 0o640))
	checkReopened(t, dir, stored, 3)
}

func TestScanLimitsTheSequenceAfterADamagedRange(t *testing.T) {
	buf := appendRecord(nil, []byte("a"), newClock().Now())
	numberRecords(buf, 1, 9, 0)
	distant := appendRecord(nil, []byte("b"), newClock().Now())
	numberRecords(distant, 1<<40, 9, 0)
	r := scan(slices.Concat(buf, []byte("hole"), distant), segmentName{firstSeq: 1, salt: 9}, 1<<60)
	// A gap of four bytes cannot contain 2^40 records.
	relaytest.Equal(t, "the last sequence", r.lastSeq, 1)
	relaytest.Equal(t, "the gaps", r.gaps, nil)
	relaytest.Equal(t, "the end of the valid records", r.size, int64(len(buf)))
}
