package failures

import (
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// TestKillLosesNothing kills the gateway at random moments under load: 4 times, 20 times in a
// soak, or PENSTOCK_TEST_KILLS times. After every fourth kill it also kills the gateway during the next
// start. PENSTOCK_TEST_SEED repeats the moments of a run.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	kills := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 4, 20)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		random := e2e.Random(t)
		arrivals, url := e2e.NewMessageCounter(t)
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", url))
		g.Spawn()
		l := g.StartLoad(e2e.Connections)
		for round := range kills {
			e2e.SleepRandomly(random, 400*time.Millisecond)
			g.Kill()
			if round%4 == 3 {
				g.Launch()
				e2e.SleepRandomly(random, 400*time.Millisecond)
				g.Kill()
			}
			g.Spawn()
		}
		l.AwaitMessages(t, 20)
		l.End()
		if len(l.Frames.Acked) == 0 || len(l.Texts) == 0 {
			t.Fatalf("no frames or no messages were acknowledged: %v", l.Refused)
		}
		l.Check(t, arrivals)
		g.TerminateCleanly()
	})
}
