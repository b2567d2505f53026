package app

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// numberFrom reads a number from the environment.
func numberFrom(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKillLosesNothing kills the gateway at random moments under load, 20 times
// or PENSTOCK_TEST_KILLS, and every fourth time once more while it starts.
// PENSTOCK_TEST_SEED repeats the moments of a run.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	kills := numberFrom(t, "PENSTOCK_TEST_KILLS", 20)
	seed := numberFrom(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		t.Logf("PENSTOCK_TEST_SEED=%d", seed)
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		c, url := newTally(t)
		g := newGateway(t, s, fixture(t, "load.yaml", "SINK", url))
		g.spawn()
		l := g.load()
		for round := range kills {
			pass(random, 400*time.Millisecond)
			g.kill()
			if round%4 == 3 {
				g.launch()
				pass(random, 400*time.Millisecond)
				g.kill()
			}
			g.spawn()
		}
		pass(random, 400*time.Millisecond)
		l.end()
		if len(l.frames) == 0 || len(l.texts) == 0 {
			t.Fatalf("there was no load: %v", l.refused)
		}
		l.check(t, c)
		if code := g.terminate(); code != 0 {
			t.Errorf("exit code %d at the end", code)
		}
	})
}

// pass lets a random time pass, up to a limit.
func pass(random *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(most))))
}
