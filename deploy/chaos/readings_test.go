package main

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsAreReconciledByNumber(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newReadings(base)[ofGeneric]
	for n := range 4 * devicesEach {
		r.mark(n, offered)
	}
	const late, lost = 3, devicesEach + 5
	for n := range 4 * devicesEach {
		if n != late {
			r.mark(n, acked)
		}
	}
	look := func() {
		for device := range devicesEach {
			if !r.missing(device, 0, 900) {
				continue
			}
			for n := device; n < 4*devicesEach; n += devicesEach {
				if n != lost {
					r.see(r.device(n), r.at(n).Format(time.DateTime), float64(n))
				}
			}
		}
	}
	look()
	look() // what was found is not counted twice
	want := verdict{kind: ofGeneric, sent: 4 * devicesEach, acked: 4*devicesEach - 1, unansweredFound: 1, lost: []string{r.id(lost)}}
	relaytest.Equal(t, "the verdict", r.reconcile(ofGeneric), want)
	for what, one := range map[string]struct {
		device, at string
		value      float64
	}{
		"a value that was never sent": {r.device(0), base.Format(time.DateTime), 99999},
		"a value between two":         {r.device(0), base.Format(time.DateTime), 0.5},
		"another device's":            {r.device(1), base.Format(time.DateTime), 0},
		"another time's":              {r.device(0), base.Add(time.Second).Format(time.DateTime), 0},
		"one that was seen before":    {r.device(0), base.Format(time.DateTime), 0},
	} {
		r.strange = nil
		r.see(one.device, one.at, one.value)
		if got := r.reconcile(ofGeneric).unaccounted; len(got) != 1 {
			t.Errorf("%s: unaccounted: %v", what, got)
		}
	}
}
