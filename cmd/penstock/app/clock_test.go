package app

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
)

// setClock is a clock whose time of day and whose passing time a test sets.
type setClock struct {
	began          time.Time
	shift, elapsed atomic.Int64
}

func (s *setClock) now() time.Time {
	return s.began.Add(time.Duration(s.elapsed.Load() + s.shift.Load()))
}
func (s *setClock) passed() time.Duration { return time.Duration(s.elapsed.Load()) }

func TestAClockThatJumpsIsNotReliedOn(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type step struct {
		passes, jumps time.Duration
		relied        bool
	}
	for name, steps := range map[string][]step{
		"a clock that goes on":                       {{hour, 0, true}, {40 * day, 0, true}},
		"half an hour":                               {{hour, hour / 2, true}, {0, -hour / 2, true}},
		"a drift":                                    {{day, hour / 2, true}, {day, hour / 2, true}, {day, hour / 2, true}},
		"40 days, and back a minute later":           {{hour, 40 * day, false}, {time.Minute, -40 * day, true}},
		"5 hours back":                               {{hour, -5 * hour, false}, {12 * hour, 0, false}},
		"40 days, for a day":                         {{hour, 40 * day, false}, {23 * hour, 0, false}, {hour, 0, true}, {hour, 0, true}},
		"two jumps: the day begins with the second":  {{hour, 40 * day, false}, {23 * hour, 5 * hour, false}, {hour, 0, false}, {23 * hour, 0, true}},
		"a clock that is set right after it started": {{time.Second, 56 * 365 * day, false}, {day, 0, true}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &setClock{began: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
			c := newClock(set.now, set.passed, slog.New(slog.DiscardHandler))
			for n, s := range steps {
				set.elapsed.Add(int64(s.passes))
				set.shift.Add(int64(s.jumps))
				if relied := !c.jumps(); relied != s.relied {
					t.Errorf("step %d: relied on: %v, want %v", n+1, relied, s.relied)
				}
			}
		})
	}
}

// TestAClockThatJumpsDeletesNothing sets the clock of a whole gateway forward by 40 days,
// back, and forward for good.
func TestAClockThatJumpsDeletesNothing(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, fixture(t, "inventory.yaml"))
	cfg, err := config.Load(g.file, g.env)
	must(t, err)
	handler, _ := NewLog(g.logs, cfg.Log)
	d, err := Open(t.Context(), cfg, slog.New(handler), "test")
	must(t, err)
	set := &setClock{began: time.Now()}
	d.clock.mu.Lock() // the journals look at it already
	d.clock.now, d.clock.elapsed, d.clock.agreed, d.clock.at = set.now, set.passed, set.now(), 0
	d.clock.mu.Unlock()
	g.serves(d)

	acme := g.as("acme-all-0123456")
	acme.post("/webhooks/generic/cellar?decoder_id=sent", `{"temperature":11,"door":"shut"}`).mentions(t, 200, "shut")
	g.settled()
	id := acme.device("cellar")
	var list struct{ Data []struct{ ID, Key string } }
	acme.get("/iot/devices/"+id+"/sensors").into(t, &list)
	for _, sensor := range list.Data {
		acme.do("PATCH", "/iot/sensors/"+sensor.ID, `{"retention_days":30}`).mentions(t, 200, `"retention_days":30`)
	}
	const day = 24 * time.Hour
	for _, step := range []struct {
		name          string
		passes, jumps time.Duration
		relied, kept  bool
	}{
		{"40 days forward", 0, 40 * day, false, true},
		{"back", 0, -40 * day, true, true},
		{"5 hours back", 0, -5 * time.Hour, false, true},
		{"5 hours forward", 0, 5 * time.Hour, true, true},
		{"40 days forward again", 0, 40 * day, false, true},
		{"and so for a day", day, 0, true, false},
	} {
		set.elapsed.Add(int64(step.passes))
		set.shift.Add(int64(step.jumps))
		must(t, d.expireReadings(context.Background()))
		must(t, d.sweepRecords(context.Background()))
		status, r := g.ready()
		if said := strings.Contains(r.Backends["clock"].Error, "the clock has jumped"); status != http.StatusOK || said == step.relied {
			t.Errorf("%s: /readyz %d %+v", step.name, status, r.Backends["clock"])
		}
		got := short(acme.readings(id, ""))
		if kept := strings.Contains(got, "temperature=11"); kept != step.kept {
			t.Errorf("%s: readings %q, kept %v, want %v", step.name, got, kept, step.kept)
		}
	}
}
