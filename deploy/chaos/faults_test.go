package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestFaultsStrikeAsOftenAsTheirWeightSays(t *testing.T) {
	all := append(on(1, []fault{{name: "rare"}}), on(4, []fault{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}})...)
	credit, random := make([]float64, len(all)), rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for range 200 {
		counts[choose(all, credit, random).name]++
	}
	for name, want := range map[string]int{"rare": 100, "a": 25, "b": 25, "c": 25, "d": 25} {
		if got := counts[name]; got < want-2 || got > want+2 {
			t.Errorf("%s struck %d times, want %d", name, got, want)
		}
	}
}

func TestWhatComesAgainIsPutDownToTheFaultThatLostItsAnswer(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	all := struck{{"killed", at(10), at(12)}, {"frozen", at(30), at(33)}}
	for name, tc := range map[string]struct {
		taken time.Time
		want  string
	}{
		"shortly before the fault":     {at(9), "killed"},
		"during the fault":             {at(11), "killed"},
		"between two, before the next": {at(29), "frozen"},
		"long before any":              {at(13), noFault},
		"after all":                    {at(34), noFault},
	} {
		t.Run(name, func(t *testing.T) {
			if got := all.causes([]time.Time{tc.taken, tc.taken}); len(got) != 1 || got[tc.want] != 2 {
				t.Errorf("got %v, want 2 of %q", got, tc.want)
			}
		})
	}
}
