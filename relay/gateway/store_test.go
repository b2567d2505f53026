package gateway

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestGateways(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"register themselves":              register,
		"share what was generated":         shareSettings,
		"do periodic work once a period":   takeTurns,
		"hold a carrier one at a time":     holdCarriers,
		"note how far their journals came": noteCheckpoints,
	})
}

func register(t *testing.T, s *Store) {
	ctx := t.Context()
	g := Gateway{Node: "n2", URL: "http://a:1", Version: "v1", StartedAt: dbtest.At(0), Facts: Facts{Redis: "r"}}
	other := Gateway{Node: "n1", URL: "http://b:1"}
	for _, one := range []Gateway{g, other, g} {
		if err := s.Heartbeat(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	all := relaytest.Must(s.Gateways(ctx))(t)
	for i := range all {
		if time.Since(all[i].SeenAt) > time.Minute {
			t.Errorf("%s was seen at %s", all[i].Node, all[i].SeenAt)
		}
		all[i].SeenAt = time.Time{}
	}
	relaytest.Equal(t, "the gateways", all, []Gateway{other, g})
	if err := s.Forget(ctx, "n2"); err != nil {
		t.Error(err)
	}
	if err := s.Forget(ctx, "n2"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

func shareSettings(t *testing.T, s *Store) {
	var all sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = s.Setting(t.Context(), "secret", func() string { return fmt.Sprint("made by ", i) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, one := range got {
		if one != got[0] {
			t.Errorf("%q", got)
		}
	}
}

func takeTurns(t *testing.T, s *Store) {
	for period := range 3 {
		var took atomic.Int32
		dbtest.Together(8, func(_ int) {
			mine, err := s.Turn(t.Context(), fmt.Sprint("sweep", period), time.Hour)
			if err != nil {
				t.Error(err)
			}
			if mine {
				took.Add(1)
			}
		})
		if took.Load() != 1 {
			t.Errorf("%d gateways swept", took.Load())
		}
	}
}

func holdCarriers(t *testing.T, s *Store) {
	ctx := t.Context()
	for _, step := range []struct {
		name, carrier, node string
		period              time.Duration
		release             bool
		want                string
	}{
		{"the first one", "op", "n1", time.Hour, false, "n1"},
		{"another one", "op", "n2", time.Hour, false, "n1"},
		{"another carrier", "second", "n2", time.Hour, false, "n2"},
		{"a renewal", "op", "n1", 0, false, "n1"},
		{"after the end", "op", "n2", time.Hour, false, "n2"},
		{"a release by one that has lost it", "op", "n1", time.Hour, true, "n2"},
		{"a release by the holder", "op", "n2", time.Hour, true, "n2"},
	} {
		got, err := s.HoldCarrier(ctx, step.carrier, step.node, step.period)
		if err != nil || got != step.want {
			t.Errorf("%s: %q, %v, want %q", step.name, got, err, step.want)
		}
		if step.release {
			relaytest.NoError(t, s.ReleaseCarrier(ctx, step.carrier, step.node))
		}
	}
	got, err := s.HoldCarrier(ctx, "op", "n3", time.Hour)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the holder after the release", got, "n3")
}

func noteCheckpoints(t *testing.T, s *Store) {
	ctx := t.Context()
	for _, seq := range []uint64{5, 7, 6} {
		if err := s.SetCheckpoint(ctx, "n1", "sms", seq); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string]uint64{"sms": 6, "uplink": 0} {
		if got, err := s.Checkpoint(ctx, "n1", kind); err != nil || got != want {
			t.Errorf("%s: %d, %v", kind, got, err)
		}
	}
}
