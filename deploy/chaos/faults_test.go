package main

import (
	"math/rand/v2"
	"testing"
)

func TestEachFaultStrikesOnceBeforeAnyStrikesAgain(t *testing.T) {
	counts := map[string]int{}
	for _, f := range shuffled([]fault{{name: "a"}, {name: "b"}, {name: "c"}}, 8, rand.New(rand.NewPCG(1, 2))) {
		counts[f.name]++
	}
	for _, name := range []string{"a", "b", "c"} {
		if n := counts[name]; n < 2 || n > 3 {
			t.Errorf("%s struck %d of 8 times, want 2 or 3", name, n)
		}
	}
}
