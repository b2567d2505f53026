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

// written returns a closed log of n records, with its only segment's bytes and
// where each record begins.
func written(t *testing.T, n int) (dir string, stored map[uint64]string, data []byte, offs []int) {
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

// copied returns a directory with one segment that has these bytes.
func copied(t *testing.T, from string, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, filepath.Base(segmentFiles(t, from)[0]))
	relaytest.NoError(t, os.WriteFile(path, data, 0o640))
	return dir
}

// reopened checks that the log has exactly the records of want, that the next append gets a
// sequence above spent, and that the log has all these records after another start.
func reopened(t *testing.T, dir string, want map[uint64]string, spent uint64) {
	t.Helper()
	l := mustOpen(t, dir, Options{})
	sameContent(t, content(t, l), want)
	seq := mustAppend(t, l, "after")
	if seq <= spent {
		t.Errorf("sequence %d was given before", seq)
	}
	mustClose(t, l)
	l = mustOpen(t, dir, Options{})
	want = maps.Clone(want)
	want[seq] = "after"
	sameContent(t, content(t, l), want)
	wantGaps(t, l)
	mustClose(t, l)
}

func TestATailCutAtEveryByteOfTheLastRecordLosesOnlyThatRecord(t *testing.T) {
	dir, stored, data, offs := written(t, 4)
	for end := offs[3]; end < len(data); end++ {
		t.Run(fmt.Sprint(end-offs[3], " bytes left"), func(t *testing.T) {
			spent := uint64(4)
			if end == offs[3] {
				spent = 3 // nothing of the record is left
			}
			reopened(t, copied(t, dir, data[:end]), without(stored, 4), spent)
		})
	}
}

func TestTails(t *testing.T) {
	dir, stored, data, offs := written(t, 4)
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
		"zeros appended":                       {append(bytes.Clone(data), make([]byte, 1<<20)...), nil},
		"garbage appended":                     {append(bytes.Clone(data), garbage...), nil},
		"one byte appended":                    {append(bytes.Clone(data), 7), nil},
		"the last record zeroed":               {append(bytes.Clone(data[:offs[3]]), make([]byte, 200)...), []uint64{4}},
		"the last record garbage":              {append(bytes.Clone(data[:offs[3]]), garbage...), []uint64{4}},
		"a bit flipped in the last payload":    {flip(len(data) - 5), []uint64{4}},
		"a bit flipped in the last length":     {flip(offs[3] + 1), []uint64{4}},
		"a bit flipped in the last sequence":   {flip(offs[3] + 8), []uint64{4}},
		"a bit flipped in the last time":       {flip(offs[3] + 20), []uint64{4}},
		"a bit flipped in the last checksum":   {flip(offs[3] + 4), []uint64{4}},
		"everything zeroed":                    {make([]byte, len(data)), []uint64{1, 2, 3, 4}},
		"an old record once more":              {append(bytes.Clone(data), data[:offs[1]]...), nil},
		"the last record torn inside, not cut": {append(append(bytes.Clone(data[:offs[3]+50]), make([]byte, 40)...), data[offs[3]+90:]...), []uint64{4}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, dir, c.data)
			reopened(t, dir, without(stored, c.lost...), 4)
		})
	}
}

func TestACutTailIsKeptBesideUnlessItIsZero(t *testing.T) {
	dir, _, data, _ := written(t, 2)
	for name, c := range map[string]struct {
		tail []byte
		kept int
	}{"garbage": {[]byte("abc"), 1}, "zeros": {make([]byte, 3), 0}} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, dir, append(bytes.Clone(data), c.tail...))
			l := mustOpen(t, dir, Options{})
			relaytest.Equal(t, "the number of bytes cut", l.Stats().Cut, 3)
			wantGaps(t, l)
			bad, _ := filepath.Glob(filepath.Join(dir, "*"+damagedSuffix))
			if len(bad) != c.kept {
				t.Errorf("kept %v", bad)
			}
		})
	}
}

func TestSequencesAreNotGivenAgainBehindACheckpoint(t *testing.T) {
	dir, _, _, offs := written(t, 4)
	l := mustOpen(t, dir, Options{})
	c := mustConsumer(t, l, "c")
	relaytest.NoError(t, c.Commit(4))
	mustClose(t, l)
	edit(t, segmentFiles(t, dir)[0], func(b []byte) []byte { return b[:offs[2]] })
	l = mustOpen(t, dir, Options{})
	if seq := mustAppend(t, l, "new"); seq != 5 {
		t.Fatalf("sequence %d, want 5", seq)
	}
	recs, err := mustConsumer(t, l, "c").Next(t.Context(), 10)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the sequences read", sequences(recs), []uint64{5})
	for _, rec := range recs {
		relaytest.Equal(t, "the payload", string(rec.Payload), "new")
	}
}

func TestARecoveryThatWasInterruptedIsFinished(t *testing.T) {
	dir, stored, _, _ := written(t, 3)
	old := segmentFiles(t, dir)[0]
	edit(t, old, func(b []byte) []byte { return append(b, "torn"...) })
	// As if stopped after the new segment was made and before the tail was cut.
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, newSegmentName(5, 3).String()), nil, 0o640))
	reopened(t, dir, stored, 4)
}

func TestSegmentsWithInvalidNamesAreRefused(t *testing.T) {
	for name, file := range map[string]string{
		"a version to come":       "00000000000000000001-00000000000000000000-00000000.v2.segment",
		"a name without a salt":   "00000000000000000001-00000000000000000000.v1.segment",
		"a sequence of zero":      "00000000000000000000-00000000000000000000-00000000.v1.segment",
		"one that follows itself": "00000000000000000005-00000000000000000005-00000000.v1.segment",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o640))
			if l, err := Open(dir, Options{Logger: quiet()}); err == nil {
				mustClose(t, l)
				t.Error("opened")
			}
			_, err := Open(dir, Options{Logger: quiet()})
			if err == nil {
				t.Error("opened by the second attempt")
			}
			if errors.Is(err, ErrLocked) {
				t.Errorf("the failed attempt kept the lock: %v", err)
			}
		})
	}
}

func TestADuplicateSegmentOfAFailedCreationIsRemoved(t *testing.T) {
	dir, stored, _, _ := written(t, 3)
	relaytest.NoError(t, os.WriteFile(filepath.Join(dir, newSegmentName(1, 0).String()), nil, 0o640))
	reopened(t, dir, stored, 3)
}

func TestScanBoundsTheSequenceBehindABadRange(t *testing.T) {
	buf := appendRecord(nil, []byte("a"), newClock().Now())
	numberRecords(buf, 1, 9, 0)
	far := appendRecord(nil, []byte("b"), newClock().Now())
	numberRecords(far, 1<<40, 9, 0)
	r := scan(slices.Concat(buf, []byte("hole"), far), segmentName{firstSeq: 1, salt: 9}, 1<<60)
	// Four bytes cannot hold 2^40 records.
	relaytest.Equal(t, "the last sequence", r.lastSeq, 1)
	relaytest.Equal(t, "the gaps", r.gaps, nil)
	relaytest.Equal(t, "the end of the valid records", r.size, int64(len(buf)))
}
