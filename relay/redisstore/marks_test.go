package redisstore

import (
	"fmt"
	"math"
	"testing"

	"github.com/penstock/penstock/relay/event"
)

func TestMarks(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		for name, test := range map[string]func(*testing.T, *DB){
			"marks come back by range and by state":    marksComeBack,
			"a later mark replaces an earlier one":     marksAreReplaced,
			"marks are listed newest first, page wise": marksPage,
			"nodes and kinds do not mix":               marksAreApart,
			"2,500 marks are trimmed below a sequence": marksAreTrimmed,
		} {
			t.Run(name, func(t *testing.T) { test(t, open(t)) })
		}
	})
}

func markOf(seq uint64, state event.State) event.Mark {
	return event.Mark{ID: fmt.Sprint("n1-u", seq), Seq: seq, State: state, Reason: "é\n", Account: 7, Source: "tts-v3", Device: eui}
}

func marksComeBack(t *testing.T, db *DB) {
	s := db.Marks("n1")
	want := []event.Mark{markOf(3, event.Quarantined), markOf(5, event.Unrouted), markOf(9, event.Quarantined)}
	mustDo(t, s.Set(t.Context(), event.Uplink, want))
	got, err := s.Get(t.Context(), event.Uplink, 3, 8)
	if err != nil || len(got) != 2 || got[3] != want[0] || got[5] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
	counts, err := s.Counts(t.Context(), event.Uplink)
	if err != nil || counts[event.Quarantined] != 2 || counts[event.Unrouted] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}

func marksAreReplaced(t *testing.T, db *DB) {
	s := db.Marks("n1")
	mustDo(t, s.Set(t.Context(), event.SMS, []event.Mark{markOf(3, event.Unrouted), markOf(4, event.Unrouted)}),
		s.Set(t.Context(), event.SMS, []event.Mark{markOf(3, event.Quarantined), markOf(4, event.Done), markOf(5, event.Done)}))
	counts, err := s.Counts(t.Context(), event.SMS)
	if err != nil || counts[event.Quarantined] != 1 || counts[event.Unrouted] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
	if got, err := s.Get(t.Context(), event.SMS, 0, math.MaxInt64); err != nil || len(got) != 1 || got[3].State != event.Quarantined {
		t.Errorf("%+v, %v", got, err)
	}
}

func marksPage(t *testing.T, db *DB) {
	s := db.Marks("n1")
	var all []event.Mark
	for seq := uint64(1); seq <= 25; seq++ {
		all = append(all, markOf(seq, event.Quarantined))
	}
	mustDo(t, s.Set(t.Context(), event.Uplink, all))
	want := uint64(25)
	for below := uint64(math.MaxInt64); ; {
		page, err := s.List(t.Context(), event.Uplink, event.Quarantined, below, 10)
		mustDo(t, err)
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if m.Seq != want {
				t.Fatalf("%d, want %d", m.Seq, want)
			}
			want--
		}
		below = page[len(page)-1].Seq
	}
	if want != 0 {
		t.Errorf("ends at %d", want+1)
	}
}

func marksAreApart(t *testing.T, db *DB) {
	mustDo(t, db.Marks("n1").Set(t.Context(), event.Uplink, []event.Mark{markOf(1, event.Quarantined)}))
	for _, other := range []struct {
		node string
		kind event.Kind
	}{{"n2", event.Uplink}, {"n1", event.SMS}} {
		if got, err := db.Marks(other.node).Get(t.Context(), other.kind, 0, 10); len(got) != 0 || err != nil {
			t.Errorf("%v: %+v, %v", other, got, err)
		}
	}
}

func marksAreTrimmed(t *testing.T, db *DB) {
	s := db.Marks("n1")
	var all []event.Mark
	for seq := uint64(1); seq <= 2500; seq++ {
		all = append(all, markOf(seq, []event.State{event.Quarantined, event.Unrouted}[seq%20/19]))
	}
	mustDo(t, s.Set(t.Context(), event.Uplink, all), s.Trim(t.Context(), event.Uplink, 2499), s.Trim(t.Context(), event.Uplink, 0))
	left, err := s.Get(t.Context(), event.Uplink, 0, math.MaxInt64)
	hash, err2 := db.rdb.HLen(t.Context(), keyMarks("n1", "uplink")).Result()
	mustDo(t, err, err2)
	if len(left) != 2 || left[2499].Seq != 2499 || hash != 2 {
		t.Errorf("%d left, %d in the hash", len(left), hash)
	}
}
