package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	registry "github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/relaytest"
)

// newMembership returns the membership of a gateway on a database. halts has the arguments of
// afterRestore.
func newMembership(t *testing.T, db *db.DB, node string) (m *membership, halts *[]registry.Halt) {
	halts = new([]registry.Halt)
	return &membership{
		forgetKeys: func() {},
		store:      registry.NewStore(db), dir: t.TempDir(), self: registry.Gateway{Node: node}, gate: registry.NewGate(), log: slog.New(slog.DiscardHandler),
		afterRestore: func(_ context.Context, h registry.Halt) (int, error) { *halts = append(*halts, h); return 3, nil },
		accept:       func(context.Context) ([]string, error) { return nil, nil },
	}, halts
}

func TestGatewaysStopUntilOneHasRecoveredTheirDatabase(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	first, halts := newMembership(t, database, "n1")
	second, _ := newMembership(t, database, "n2") // its witness is not newer than the backup
	forgotten := 0
	first.forgetKeys = func() { forgotten++ }
	verify := func(m *membership, name, reason string) {
		t.Helper()
		relaytest.NoError(t, m.verify(ctx))
		if got := m.Halted(); reason == "" && got != "" || !strings.Contains(got, reason) || m.gate.Closed() == (reason == "") {
			t.Errorf("%s: halted %q, gate closed %v; want a reason with %q", name, got, m.gate.Closed(), reason)
		}
	}
	if !first.gate.Closed() {
		t.Error("the gate is open before the database is verified")
	}
	relaytest.NoError(t, first.store.Heartbeat(ctx, first.self))
	verify(first, "at the start", "")
	for range 3 {
		relaytest.NoError(t, first.acknowledge(ctx))
	}
	verify(first, "after heartbeats", "")
	lastWrite := relaytest.Must(first.store.LastWrite(ctx))(t)

	relaytest.NoError(t, first.store.SetCheckpoint(ctx, "n1", "", 1)) // the backup
	relaytest.Equal(t, "how often keys were forgotten before the halt", forgotten, 0)
	verify(first, "on the backup", "restored from a backup")
	relaytest.Equal(t, "how often keys were forgotten at the halt", forgotten, 1)
	verify(second, "another gateway on the backup", "gateway n1 has found the database in an earlier state")

	done := relaytest.Must(first.Recover(ctx))(t)
	relaytest.Equal(t, "parts that became unknown", done.Unknown, 3)
	halt := (*halts)[0]
	if halt.Node != "n1" || !halt.Holds() || halt.Since.IsZero() || !halt.LastWrite.Equal(lastWrite) {
		t.Errorf("the halt is %+v, want one of n1 since now, with the last write %s", halt, lastWrite)
	}
	verify(first, "after the recovery", "")
	verify(second, "another gateway after the recovery", "")
}

// TestAGatewayThatComesBackAfterARecoveryStopsAlone recovers two gateways one after the other. The
// second recovery must not change messages, which were sent after the first.
func TestAGatewayThatComesBackAfterARecoveryStopsAlone(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	away, halts := newMembership(t, database, "n1")
	other, _ := newMembership(t, database, "n2")
	for _, m := range []*membership{away, other} {
		relaytest.NoError(t, m.verify(ctx))
		relaytest.NoError(t, m.acknowledge(ctx))
	}
	relaytest.NoError(t, away.store.SetCheckpoint(ctx, "n1", "", 0))
	relaytest.NoError(t, other.store.SetCheckpoint(ctx, "n2", "", 0))
	relaytest.NoError(t, other.verify(ctx))
	relaytest.Must(other.Recover(ctx))(t)

	relaytest.NoError(t, away.verify(ctx))
	relaytest.NoError(t, other.verify(ctx))
	if away.Halted() == "" || other.Halted() != "" {
		t.Errorf("halted: %q and %q, want the first only", away.Halted(), other.Halted())
	}
	relaytest.Must(away.Recover(ctx))(t)
	if halt := (*halts)[0]; halt.Holds() {
		t.Errorf("the halt %+v holds at the second recovery", halt)
	}
}

// processed counts processed entries by their body.
type processed struct {
	mu     sync.Mutex
	counts map[string]int
}

func (p *processed) Parse(*intake.Item) (struct{}, []uint64, error) { return struct{}{}, nil, nil }

func (p *processed) Describe(intake.Parsed[struct{}]) string { return "" }

func (p *processed) Process(_ context.Context, items []intake.Parsed[struct{}]) ([]event.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range items {
		p.counts[string(items[i].Entry.Body)]++
	}
	return nil, nil
}

// TestAGatewayWithoutAWitnessReprocessesLostEntries restores a backup that is newer than the last
// heartbeat of the second gateway. Its next heartbeat comes before the first gateway has found
// that the database was restored.
func TestAGatewayWithoutAWitnessReprocessesLostEntries(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	first, _ := newMembership(t, database, "n1")
	second, _ := newMembership(t, database, "n2")
	log := relaytest.Must(journal.Open(t.TempDir(), journal.Options{Logger: second.log}))(t)
	defer func() { _ = log.Close() }()
	p := &processed{counts: map[string]int{}}
	in := relaytest.Must(intake.New(event.SMS, "n2", log, event.NewStatuses(database, "n2"), p, intake.Options{Logger: second.log, Linger: -1}))(t)
	second.intakes = map[event.Kind]*intake.Intake{event.SMS: in}
	running, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { _ = in.Run(running) })
	defer ended.Wait()
	defer stop()
	process := func(body string) {
		t.Helper()
		committed := in.Committed()
		relaytest.Must(in.Accept(ctx, &intake.Entry{Body: []byte(body)}))(t)
		relaytest.Eventually(t, body+" is processed", func() (any, bool) { return in.Committed(), in.Committed() > committed })
	}
	for _, m := range []*membership{first, second} {
		relaytest.NoError(t, m.verify(ctx))
		relaytest.NoError(t, m.acknowledge(ctx))
	}
	process("after the backup")
	relaytest.NoError(t, first.acknowledge(ctx))

	relaytest.NoError(t, first.store.SetCheckpoint(ctx, "n1", "", 1)) // restores the backup
	relaytest.NoError(t, second.verify(ctx))
	relaytest.NoError(t, second.acknowledge(ctx))
	for _, m := range []*membership{first, second} {
		relaytest.NoError(t, m.verify(ctx))
		if m.Halted() == "" {
			t.Fatalf("%s continues, want it to stop", m.self.Node)
		}
	}
	relaytest.Must(first.Recover(ctx))(t)
	relaytest.NoError(t, second.verify(ctx))
	relaytest.Equal(t, "why the second gateway has stopped", second.Halted(), "")
	relaytest.Equal(t, "how often the entry was processed", p.counts["after the backup"], 2)
}

func TestANewConnectionToARestoredDatabaseClosesTheGate(t *testing.T) {
	ctx := t.Context()
	database := dbtest.Open(t, db.Options{})
	for _, tc := range []struct {
		name, database string
		beats          uint64
		reason         string
	}{
		{"as it was", "", 2, ""},
		{"a later state, because the answer to a heartbeat was lost", "", 3, ""},
		{"an earlier state", "", 1, "restored from a backup"},
		{"another one", "other", 2, "another database"},
		{"an empty one", "none", 0, "is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := newMembership(t, database, "n1")
			relaytest.NoError(t, m.verify(ctx))
			m.seen = witness{Node: "n1", Database: m.database, Beats: 2, At: time.Now()}
			err := m.verifyConnection(ctx, func(context.Context) (string, uint64, error) {
				switch tc.database {
				case "":
					return m.database, tc.beats, nil
				case "none":
					return "", tc.beats, nil
				}
				return tc.database, tc.beats, nil
			})
			if got := m.Halted(); err != nil || tc.reason == "" && got != "" || !strings.Contains(got, tc.reason) || m.gate.Closed() != (tc.reason != "") {
				t.Errorf("halted %q, closed %v, %v; want a reason with %q", got, m.gate.Closed(), err, tc.reason)
			}
		})
	}
}

func TestAProcessRefusesTheNameOfAnotherProcess(t *testing.T) {
	for _, tc := range []struct {
		name  string
		place string // of the new process; that of the other one is "a"
		lives bool   // whether the other process sends heartbeats
		taken bool
	}{
		{"a restart in the same place, while the last heartbeat arrives", "a", true, false},
		{"a copy of the data directory of a gateway that works", "b", true, true},
		{"the data directory of a gateway that has ended, on another machine", "b", false, false},
		{"an unknown place", "", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, database := t.Context(), dbtest.Open(t, db.Options{})
			started := func(place, url string) *membership {
				m, _ := newMembership(t, database, "n1")
				m.self.URL, m.self.Facts, m.watchFor = url, registry.Facts{registry.Incarnation: rand.Text(), registry.Place: place}, 250*time.Millisecond
				relaytest.NoError(t, m.verify(ctx))
				return m
			}
			other, newcomer := started("a", "http://other:1"), started(tc.place, "http://newcomer:1")
			relaytest.NoError(t, other.store.Heartbeat(ctx, other.self))
			if tc.lives {
				newcomer.watchFor = time.Minute
				stop, cancel := context.WithCancel(ctx)
				var beats sync.WaitGroup
				beats.Go(func() {
					for relay.Sleep(stop, 5*time.Millisecond) {
						_ = other.store.Heartbeat(stop, other.self)
					}
				})
				defer beats.Wait()
				defer cancel()
			}
			taken, err := newcomer.checkName(ctx)
			if err != nil || taken != tc.taken || newcomer.gate.Closed() != tc.taken || tc.taken && !strings.Contains(newcomer.Halted(), "http://other:1") {
				t.Errorf("taken %v (%v), closed %v, %q; want taken %v", taken, err, newcomer.gate.Closed(), newcomer.Halted(), tc.taken)
			}
		})
	}
}

// The start watches the name, and the first heartbeat does not watch it again.
func TestANameIsWatchedOnce(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	m, _ := newMembership(t, database, "n1")
	var logged strings.Builder
	m.log, m.watchFor = slog.New(slog.NewTextHandler(&logged, nil)), time.Millisecond
	m.self.Facts = registry.Facts{registry.Incarnation: "newcomer"}
	relaytest.NoError(t, m.verify(ctx), m.store.Heartbeat(ctx, registry.Gateway{Node: "n1", URL: "http://ended:1", Facts: registry.Facts{registry.Incarnation: "ended"}}))
	for range 2 {
		relaytest.Equal(t, "taken", relaytest.Must(m.checkName(ctx))(t), false)
	}
	relaytest.Equal(t, "how often the name was watched", strings.Count(logged.String(), "is registered elsewhere"), 1)
}

func TestAGatewayWhoseNameIsTakenStopsForGood(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	m, _ := newMembership(t, database, "n1")
	m.self.Facts, m.claimed = registry.Facts{registry.Incarnation: "first"}, true
	relaytest.NoError(t, m.verify(ctx), m.store.Heartbeat(ctx, m.self))
	taken := relaytest.Must(m.checkName(ctx))(t)
	relaytest.Equal(t, "taken by itself", taken, false)
	relaytest.NoError(t, m.store.Heartbeat(ctx, registry.Gateway{Node: "n1", URL: "http://other:1", Facts: registry.Facts{registry.Incarnation: "second"}}))
	relaytest.NoError(t, m.beat(ctx)) // finds the other process
	relaytest.NoError(t, m.verify(ctx), m.beat(ctx))
	if !m.gate.Closed() || !strings.Contains(m.Halted(), "http://other:1") {
		t.Errorf("closed %v, %q; want it to stay closed, with the other one's address", m.gate.Closed(), m.Halted())
	}
	if _, err := m.Recover(ctx); relay.KindOf(err) != relay.KindConflict {
		t.Errorf("recover returned %v", err)
	}
	all := relaytest.Must(m.store.Gateways(ctx))(t)
	relaytest.Equal(t, "the registered process", all[0].Facts[registry.Incarnation], "second")
}
