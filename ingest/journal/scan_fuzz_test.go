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

// prefix returns n valid records.
func prefix(n int, salt uint32) []byte {
	var buf []byte
	for i := range n {
		buf = appendRecord(buf, bytes.Repeat([]byte{byte(i)}, i*7), time.Unix(int64(i), 0))
	}
	numberRecords(buf, 1, salt, 0)
	return buf
}

func corpus(f *testing.F) {
	f.Helper()
	whole := prefix(5, 0)
	f.Add([]byte{})
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), make([]byte, 100)...))
	damaged := bytes.Clone(whole)
	damaged[50] ^= 1
	f.Add(damaged)
	f.Add(bytes.Repeat([]byte{0xff}, 100))
}

// FuzzScan scans arbitrary bytes. Valid records have a matching checksum and an ascending
// sequence; gaps and records cover the bytes up to the end exactly once.
func FuzzScan(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := scan(data, segmentName{firstSeq: 1}, math.MaxUint64)
		off, last, gaps := int64(0), uint64(0), r.gaps
		for off < r.size {
			if len(gaps) > 0 && gaps[0].Offset == off {
				g := gaps[0]
				if g.Length <= 0 || g.First != last+1 || g.Last < last {
					t.Fatalf("behind record %d: gap %+v", last, g)
				}
				off, last, gaps = off+g.Length, g.Last, gaps[1:]
				continue
			}
			rec, n, err := parseRecord(data[off:], 0)
			relaytest.NoError(t, err)
			if rec.Seq != last+1 {
				t.Fatalf("at %d: record %d behind record %d", off, rec.Seq, last)
			}
			off, last = off+int64(n), rec.Seq
		}
		if len(gaps) > 0 {
			t.Fatalf("the gap at %d was not reached", gaps[0].Offset)
		}
		relaytest.Equal(t, "the end of the valid records", off, r.size)
		relaytest.Equal(t, "the last sequence", last, r.lastSeq)
		relaytest.Equal(t, "whether the tail has a description", r.tail != "", r.size < int64(len(data)))
	})
}

// FuzzRecovery opens a log of valid records with arbitrary bytes behind them. Recovery keeps
// exactly the records, appends continue, and readers return the same records.
func FuzzRecovery(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, garbage []byte) {
		const salt, records = 0x5eed, 4
		dir, whole := t.TempDir(), prefix(records, salt)
		name := segmentName{firstSeq: 1, salt: salt}.String()
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, name), append(bytes.Clone(whole), garbage...), 0o640))
		l := mustOpen(t, dir, Options{})
		defer l.Close()
		st := l.Stats()
		relaytest.Equal(t, "the last sequence", st.Last, records)
		relaytest.Equal(t, "the bytes stored", st.Bytes, int64(len(whole)))
		relaytest.Equal(t, "the bytes cut", st.Cut, int64(len(garbage)))
		wantGaps(t, l)
		seq := mustAppend(t, l, "next")
		if seq <= records {
			t.Fatalf("sequence %d was assigned again", seq)
		}
		got := content(t, l)
		relaytest.Equal(t, "the number of records", len(got), records+1)
		relaytest.Equal(t, "the record appended", got[seq], "next")
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add(segmentName{firstSeq: 7, follows: 3, salt: 9}.String())
	f.Add("00000000000000000001-00000000000000000000-0000000g.v1.segment")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSegmentName(s); err == nil && n.String() != s {
			t.Errorf("%q is read as %q", s, n)
		}
	})
}
