package calls

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sip"
)

var _ sip.Calls = (*Store)(nil)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func at(seconds int) time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func call(acct account.ID, key string, start int) sip.Record {
	return sip.Record{Account: acct, Call: cdr.Call{Key: key, ID: key, Start: at(start), From: "1", To: "2"}}
}

func TestRecordsAreKeptOnceAndReadInOrder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	whole := sip.Record{Account: 1, Call: cdr.Call{
		ID: "b", Key: "kb", Start: at(5).Add(250 * time.Millisecond), Answer: at(6), End: at(9), Duration: 4, Billsec: 3,
		From: "447700900123", To: "=é\n\"", Disposition: "ANSWERED", Trunk: "t",
	}}
	other := whole
	other.Call.To = "changed"
	for _, batch := range [][]sip.Record{{call(1, "z", 5), whole, call(2, "kb", 5)}, nil, {other, call(1, "a", 10), call(1, "y", 5)}} {
		if err := s.Put(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	var got []cdr.Call
	behind := sip.Place{}
	for {
		page, err := s.Read(t.Context(), 1, at(5), at(10), behind, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		behind = sip.Place{Start: page[len(page)-1].Start, Key: page[len(page)-1].Key}
	}
	if want := []cdr.Call{call(1, "y", 5).Call, call(1, "z", 5).Call, whole.Call}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestADatabaseOfANewerVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := s.db.Write.Exec(fmt.Sprint("PRAGMA user_version = ", version+1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir); err == nil {
		t.Error("it was opened")
	}
	if _, err := Open(t.Context(), filepath.Join(dir, File, "below")); err == nil {
		t.Error("a directory that cannot be made")
	}
}

func TestWhatCannotBeKeptComesAgain(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []sip.Record{call(1, "a", 1)}); relay.KindOf(err) != relay.KindUnavailable {
		t.Error(err)
	}
	if s.Check(t.Context()) == nil {
		t.Error("it works")
	}
	if _, err := s.Read(t.Context(), 1, at(0), at(9), sip.Place{}, 1); err == nil {
		t.Error("read")
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		batch := make([]sip.Record, 1000)
		for i := range batch {
			batch[i] = call(1, fmt.Sprintf("%x-%d", n*7919, i), n)
		}
		if err := s.Put(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
}
