package main

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestReconcileFindsLostUndoneAndUnaccountedItems(t *testing.T) {
	acked, offered := item{acked: true, id: "7"}, item{}
	for name, tc := range map[string]struct {
		sent       map[string]item
		found      map[string]sighting
		unanswered int
		want       verdict
	}{
		"an acknowledged item that is found is clean": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1}},
			want: verdict{sent: 1, acked: 1},
		},
		"an acknowledged item that is not found is lost": {
			sent: map[string]item{"a": acked, "b": acked}, found: map[string]sighting{"b": {times: 1}},
			want: verdict{sent: 2, acked: 2, lost: []string{"a (7)"}},
		},
		"an acknowledged item that is found but not done is undone": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1, undone: "it is pending"}},
			want: verdict{sent: 1, acked: 1, undone: []string{"a (7): it is pending"}},
		},
		"an item that is found again with the same id is duplicated": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 3}},
			want: verdict{sent: 1, acked: 1, duplicated: 1},
		},
		"an item that was not acknowledged may be found, done or not": {
			sent: map[string]item{"a": offered, "b": offered}, found: map[string]sighting{"a": {times: 1, undone: "it is pending"}},
			want: verdict{sent: 2, unansweredFound: 1},
		},
		"an item that was never sent is unaccounted": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1}, "x": {times: 1}},
			want: verdict{sent: 1, acked: 1, unaccounted: []string{"x"}},
		},
		"an item with an id of the gateway may be the result of an unanswered request": {
			found: map[string]sighting{"x": {times: 1}}, unanswered: 1,
			want: verdict{unansweredFound: 1},
		},
		"more items than unanswered requests are unaccounted": {
			found: map[string]sighting{"x": {times: 1}, "y": {times: 1}}, unanswered: 1,
			want: verdict{unaccounted: []string{"x", "y"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			for id, i := range tc.sent {
				l.offer("kind", id)
				if i.acked {
					l.ack("kind", id, i.id)
				}
			}
			for range tc.unanswered {
				l.noAnswer("kind")
			}
			tc.want.kind = "kind"
			relaytest.Equal(t, "the verdict", l.reconcile("kind", findings{"kind": tc.found}), tc.want)
		})
	}
}

func TestAnOfferAfterTheAcknowledgementKeepsIt(t *testing.T) {
	l := newLedger()
	l.ack("kind", "a", "7")
	l.offer("kind", "a")
	got := l.sent("kind")["a"]
	relaytest.Equal(t, "the item is acknowledged", got.acked, true)
	relaytest.Equal(t, "the gateway's id", got.id, "7")
}

func TestReadingsAreFoundByTheirNumber(t *testing.T) {
	s := &site{base: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ledger: newLedger()}
	const lost, late, count = devicesEach + 5, 3, 2 * devicesEach
	f := findings{}
	for n := range count {
		r := s.reading(genericKind, n)
		s.ledger.offer(r.kind, r.id())
		if n != late {
			s.ledger.ack(r.kind, r.id(), "")
		}
		if n != lost {
			f.seeOnce(r.kind, readingID(r.device, r.sampledAt.Format(time.DateTime), float64(n)))
		}
	}
	want := verdict{kind: genericKind, sent: count, acked: count - 1, unansweredFound: 1, lost: []string{s.reading(genericKind, lost).id()}}
	relaytest.Equal(t, "the verdict", s.ledger.reconcile(genericKind, f), want)
	reading0, reading1 := s.reading(genericKind, 0), s.reading(genericKind, 1)
	for name, id := range map[string]string{
		"a value that was never sent":   readingID(reading0.device, "2026-01-01 00:00:00", 99999),
		"a value between two values":    readingID(reading0.device, "2026-01-01 00:00:00", 0.5),
		"a value of another device":     readingID(reading1.device, "2026-01-01 00:00:00", 0),
		"a value of another time":       readingID(reading0.device, "2026-01-01 00:00:01", 0),
		"a value that was found before": reading0.id(),
	} {
		f := findings{}
		f.seeOnce(genericKind, reading0.id())
		f.seeOnce(genericKind, id)
		if got := s.ledger.reconcile(genericKind, f).unaccounted; len(got) != 1 {
			t.Errorf("%s: unaccounted items %v, want one", name, got)
		}
	}
}
