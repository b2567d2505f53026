package journal

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// validRecords returns n encoded records.
func validRecords(n int, salt uint32) []byte {
	var buf []byte
	for i := range n {
		buf = appendRecord(buf, bytes.Repeat([]byte{byte(i)}, i*7), time.Unix(int64(i), 0))
	}
	numberRecords(buf, 1, salt, 0)
	return buf
}

func addCorpus(f *testing.F) {
	f.Helper()
	valid := validRecords(5, 0)
	f.Add([]byte{})
	f.Add(valid)
	f.Add(valid[:len(valid)-3])
	f.Add(append(bytes.Clone(valid), make([]byte, 100)...))
	damaged := bytes.Clone(valid)
	damaged[50] ^= 1
	f.Add(damaged)
	f.Add(bytes.Repeat([]byte{0xff}, 100))
}

// FuzzScan scans arbitrary bytes. Records must have a matching checksum and the next sequence.
// Gaps and records must cover the bytes up to the end exactly once.
func FuzzScan(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := scan(data, segmentName{firstSeq: 1}, math.MaxUint64)
		off, lastSeq, gaps := int64(0), uint64(0), r.gaps
		for off < r.size {
			if len(gaps) > 0 && gaps[0].Offset == off {
				g := gaps[0]
				if g.Length <= 0 || g.First != lastSeq+1 || g.Last < lastSeq {
					t.Fatalf("invalid gap after record %d: %+v", lastSeq, g)
				}
				off, lastSeq, gaps = off+g.Length, g.Last, gaps[1:]
				continue
			}
			rec, n, err := parseRecord(data[off:], 0)
			relaytest.NoError(t, err)
			if rec.Seq != lastSeq+1 {
				t.Fatalf("record at %d = %d, want %d", off, rec.Seq, lastSeq+1)
			}
			off, lastSeq = off+int64(n), rec.Seq
		}
		if len(gaps) > 0 {
			t.Fatalf("gap at %d is beyond the end", gaps[0].Offset)
		}
		relaytest.Equal(t, "the end of the valid records", off, r.size)
		relaytest.Equal(t, "the last sequence", lastSeq, r.lastSeq)
		relaytest.Equal(t, "the tail has a reason", r.tail != "", r.size < int64(len(data)))
	})
}

// FuzzRecovery opens a log of valid records followed by arbitrary bytes. The log must keep exactly
// the valid records, and accept new ones.
func FuzzRecovery(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, garbage []byte) {
		const salt, records = 0x5eed, 4
		dir, valid := t.TempDir(), validRecords(records, salt)
		name := segmentName{firstSeq: 1, salt: salt}.String()
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, name), append(bytes.Clone(valid), garbage...), 0o640))
		l := mustOpen(t, dir, Options{})
		defer l.Close()
		st := l.Stats()
		relaytest.Equal(t, "the last sequence", st.Last, records)
		relaytest.Equal(t, "the size of the segments", st.Bytes, int64(len(valid)))
		relaytest.Equal(t, "the number of truncated bytes", st.Cut, int64(len(garbage)))
		wantGaps(t, l)
		seq := mustAppend(t, l, "next")
		if seq <= records {
			t.Fatalf("new sequence = %d, want above %d", seq, records)
		}
		got := content(t, l)
		relaytest.Equal(t, "the number of records", len(got), records+1)
		relaytest.Equal(t, "the appended record", got[seq], "next")
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add(segmentName{firstSeq: 7, previousSeq: 3, salt: 9}.String())
	f.Add("00000000000000000001-00000000000000000000-0000000g.v1.segment")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSegmentName(s); err == nil && n.String() != s {
			t.Errorf("name = %q, want %q", n, s)
		}
	})
}
