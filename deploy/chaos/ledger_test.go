package main

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestReconcileTellsWhatIsWrong(t *testing.T) {
	acked, offered := item{acked: true, answer: "7"}, item{}
	for name, tc := range map[string]struct {
		sent       map[string]item
		found      map[string]sighting
		unanswered int
		want       verdict
	}{
		"what is acknowledged and there is well": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1}},
			want: verdict{sent: 1, acked: 1},
		},
		"what is acknowledged and not there is lost": {
			sent: map[string]item{"a": acked, "b": acked}, found: map[string]sighting{"b": {times: 1}},
			want: verdict{sent: 2, acked: 2, lost: []string{"a (7)"}},
		},
		"what is acknowledged, there and not done is undone": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1, undone: "it is pending"}},
			want: verdict{sent: 1, acked: 1, undone: []string{"a (7): it is pending"}},
		},
		"what came again under its id is duplicated": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 3}},
			want: verdict{sent: 1, acked: 1, duplicated: 1},
		},
		"what was not acknowledged may be there, done or not": {
			sent: map[string]item{"a": offered, "b": offered}, found: map[string]sighting{"a": {times: 1, undone: "it is pending"}},
			want: verdict{sent: 2, unansweredFound: 1},
		},
		"what was never sent is unaccounted": {
			sent: map[string]item{"a": acked}, found: map[string]sighting{"a": {times: 1}, "x": {times: 1}},
			want: verdict{sent: 1, acked: 1, unaccounted: []string{"x"}},
		},
		"what the gateway names itself may come of a lost answer": {
			found: map[string]sighting{"x": {times: 1}}, unanswered: 1,
			want: verdict{unansweredFound: 1},
		},
		"more than the lost answers explain is unaccounted": {
			found: map[string]sighting{"x": {times: 1}, "y": {times: 1}}, unanswered: 1,
			want: verdict{unaccounted: []string{"x", "y"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(time.Now())
			for id, one := range tc.sent {
				l.offer("kind", id)
				if one.acked {
					l.ack("kind", id, one.answer)
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
	l := newLedger(time.Now())
	l.ack("kind", "a", "7")
	l.offer("kind", "a")
	got := l.of("kind")["a"]
	relaytest.Equal(t, "whether the item is acknowledged", got.acked, true)
	relaytest.Equal(t, "the answer", got.answer, "7")
}
