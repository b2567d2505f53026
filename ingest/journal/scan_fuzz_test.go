package journal

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// prefix is n valid records and what a scan of them finds.
func prefix(n int, salt uint32) []byte {
	var buf []byte
	for i := range n {
		buf = appendRecord(buf, bytes.Repeat([]byte{byte(i)}, i*7), time.Unix(int64(i), 0))
	}
	numberRecords(buf, 1, salt, func(uint64, int) {})
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

// FuzzScan: arbitrary bytes never panic; what is called valid has a matching
// checksum and an ascending sequence; holes and records cover the bytes up to
// the end exactly once.
func FuzzScan(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		v := scan(data, 0, 1, math.MaxUint64)
		off, last, bad := int64(0), uint64(0), v.badRanges
		for off < v.end {
			if len(bad) > 0 && bad[0].off == off {
				if bad[0].end <= off || bad[0].first != last+1 || bad[0].last < last {
					t.Fatalf("hole %+v at %d behind record %d", bad[0], off, last)
				}
				off, last, bad = bad[0].end, bad[0].last, bad[1:]
				continue
			}
			rec, n, err := parseRecord(data[off:], 0)
			if err != nil || rec.Seq != last+1 {
				t.Fatalf("at %d: record %d behind %d, %v", off, rec.Seq, last, err)
			}
			off, last = off+int64(n), rec.Seq
		}
		if off != v.end || last != v.last || len(bad) > 0 || (v.end < int64(len(data))) != (v.tail != "") {
			t.Fatalf("survey %+v of %d bytes, walked to %d, record %d", v, len(data), off, last)
		}
	})
}

// FuzzRecovery: a valid prefix with anything behind it is recovered as exactly
// the prefix, appending goes on, and the readers agree with the recovery.
func FuzzRecovery(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, garbage []byte) {
		const salt, records = 0x5eed, 4
		dir, whole := t.TempDir(), prefix(records, salt)
		name := segmentName{first: 1, salt: salt}.String()
		if err := os.WriteFile(filepath.Join(dir, name), append(bytes.Clone(whole), garbage...), 0o640); err != nil {
			t.Fatal(err)
		}
		l := mustOpen(t, dir, Options{})
		defer l.Close()
		if st := l.Stats(); st.Last != records || st.Bytes != int64(len(whole)) || st.Cut != int64(len(garbage)) || st.Gaps != 0 {
			t.Fatalf("stats %+v", st)
		}
		seq := mustAppend(t, l, "next")
		if got := content(t, l); len(got) != records+1 || got[seq] != "next" || seq <= records {
			t.Fatalf("content %v, next %d", got, seq)
		}
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add(segmentName{first: 7, follows: 3, salt: 9}.String())
	f.Add("00000000000000000001-00000000000000000000-0000000g.v1.segment")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSegmentName(s); err == nil && n.String() != s {
			t.Errorf("%q is read as %q", s, n)
		}
	})
}
