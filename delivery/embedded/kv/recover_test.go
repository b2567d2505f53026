package kv

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// writtenLog makes a directory whose log ends with a transaction, and returns
// it with the states before and after that, and where its frame begins and ends.
func writtenLog(t *testing.T) (dir string, before, after state, from, to int64) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, Options{})
	c := client(t, s)
	for i := range 20 {
		do(t, c, "HSET", "h", "f", i)
	}
	before, from = stateOf(s), s.wal.size
	_, err := c.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Set(context.Background(), "x", 1, 0)
		p.Set(context.Background(), "y", 1, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after = stateOf(s)
	closeStore(t, s)
	return dir, before, after, from, s.wal.size
}

// damaged returns a copy of a directory with a changed log.
func damaged(t *testing.T, dir string, change func([]byte) []byte) string {
	t.Helper()
	to := t.TempDir()
	b, err := os.ReadFile(filepath.Join(dir, fileName(1, logSuffix)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, fileName(1, logSuffix)), change(b), 0o640); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestATailTornAtAnyByteLosesTheWholeTransactionAndNothingElse(t *testing.T) {
	dir, before, after, from, to := writtenLog(t)
	for name, change := range map[string]func(b []byte, at int64) []byte{
		"cut off":             func(b []byte, at int64) []byte { return b[:at] },
		"cut off, then zeros": func(b []byte, at int64) []byte { return append(b[:at:at], make([]byte, 4096)...) },
		"one bit flipped":     func(b []byte, at int64) []byte { b[at] ^= 4; return b },
		"cut off, then garbage": func(b []byte, at int64) []byte {
			return append(b[:at:at], []byte(strings.Repeat("garbage", 40))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := from; at < to; at++ {
				d := damaged(t, dir, func(b []byte) []byte { return change(b, at) })
				s := open(t, d, Options{})
				sameState(t, before, stateOf(s))
				do(t, client(t, s), "SET", "next", at)
				closeStore(t, s)
				s = open(t, d, Options{})
				if got := do(t, client(t, s), "GET", "next"); got != strconv.FormatInt(at, 10) {
					t.Fatalf("what was written behind the cut at %d reads %v", at, got)
				}
				closeStore(t, s)
			}
		})
	}
	sameState(t, after, stateOf(open(t, damaged(t, dir, func(b []byte) []byte { return append(b, make([]byte, 100)...) }), Options{})))
}

func TestWhatWasAcknowledgedIsNeverDroppedSilently(t *testing.T) {
	dir, _, _, from, _ := writtenLog(t)
	for name, tc := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"a bit flipped in the middle":   {func(b []byte) []byte { b[from/2] ^= 1; return b }, "good frames follow at offset"},
		"a length flipped in the first": {func(b []byte) []byte { b[headerSize+4] ^= 1; return b }, "damaged at offset 28"},
		"a frame zeroed in the middle":  {func(b []byte) []byte { clear(b[from-60 : from-10]); return b }, fileName(1, logSuffix)},
		"a damaged header":              {func(b []byte) []byte { b[20] ^= 1; return b }, "header at offset 0"},
		"another file":                  {func([]byte) []byte { return []byte("something else altogether, longer than a header") }, "not a PSKVLOG1 file"},
		"a log of a later time":         {func(b []byte) []byte { return fileHeader{logMagic, 1, 7}.encode() }, "a log is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(damaged(t, dir, tc.change), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestADamagedOrMissingSnapshotIsSaid(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	do(t, client(t, s), "RPUSH", "l", "a", "b")
	if _, err := s.compact(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	name := filepath.Join(dir, fileName(2, snapSuffix))
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := range good {
		for _, b := range [][]byte{good[:at], flipped(good, at)} {
			if err := os.WriteFile(name, b, 0o640); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(dir, Options{}); err == nil {
				s.Close()
				t.Fatalf("a snapshot damaged at byte %d was taken", at)
			}
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "a log is missing") {
		t.Fatalf("without the snapshot: %v", err)
	}
	if err := os.WriteFile(name, good, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, fileName(2, logSuffix))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("without the log: %v", err)
	}
}

func flipped(b []byte, at int) []byte {
	b = append([]byte(nil), b...)
	b[at] ^= 16
	return b
}

func TestASecondProcessIsToldWhoHasTheDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	_, err := Open(dir, Options{})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("got %v, want an error with the directory and the process", err)
	}
	closeStore(t, s)
	closeStore(t, open(t, dir, Options{}))
}

func FuzzLogReader(f *testing.F) {
	rec := appendRecord(nil, 5, appendWrite(nil, false, []string{"SET", "k", "v"}))
	f.Add(appendFrame(nil, 1, rec))
	f.Add(appendFrame(appendFrame(nil, 1, rec), 2, appendRecord(nil, 6, appendWrite(nil, true, []string{"LPUSH", "k", "v"}))))
	f.Add([]byte{})
	f.Add(make([]byte, 64))
	huge := appendFrame(nil, 1, rec)
	binary.LittleEndian.PutUint32(huge[4:], 1<<31)
	f.Add(huge)
	f.Fuzz(func(t *testing.T, b []byte) {
		if seq, payload, n, err := parseFrame(b); err == nil {
			if got := appendFrame(nil, seq, payload); string(got) != string(b[:n]) {
				t.Fatalf("a frame read and written again differs: %x", got)
			}
			if findFrame(b, seq) != 0 {
				t.Fatal("a good frame is not found")
			}
		}
		recs, err := parseRecords(b) // any bytes as a payload
		if err != nil {
			return
		}
		var again []byte
		for _, r := range recs {
			var ws []byte
			for _, w := range r.writes {
				ws = appendWrite(ws, w.failed, w.args)
			}
			again = appendRecord(again, r.micros, ws)
		}
		if back, err := parseRecords(again); err != nil || len(back) != len(recs) {
			t.Fatalf("records written again do not read: %v", err)
		}
		_, _ = parseHeader(b, logMagic)
	})
}
