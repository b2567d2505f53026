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

// newMembership returns the membership of a gateway in a database. halts collects the arguments of
// afterRestore.
func newMembership(t *testing.T, db *db.DB, node string) (m *membership, halts *[]registry.Halt) {
	halts = new([]registry.Halt)
	return &membership{
		forgetKeys: func() {},
		store:      registry.NewStore(db), dir: t.TempDir(), self: registry.Gateway{Node: node}, gate: registry.NewGate(), log: slog.New(slog.DiscardHandler),
		afterRestore:  func(_ context.Context, h registry.Halt) (int, error) { *halts = append(*halts, h); return 3, nil },
		acceptLedgers: func(context.Context) ([]string, error) { return nil, nil },
	}, halts
}

func TestGatewaysStopUntilOneHasRecoveredTheirDatabase(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	n1, halts := newMembership(t, database, "n1")
	n2, _ := newMembership(t, database, "n2") // its witness is as old as the backup
	forgetCount := 0
	n1.forgetKeys = func() { forgetCount++ }
	checkHalted := func(m *membership, name, reason string) {
		t.Helper()
		relaytest.NoError(t, m.verify(ctx))
		if got := m.HaltReason(); reason == "" && got != "" || !strings.Contains(got, reason) || m.gate.Closed() == (reason == "") {
			t.Errorf("%s: halted = %q, gate closed = %v; want a reason that contains %q", name, got, m.gate.Closed(), reason)
		}
	}
	if !n1.gate.Closed() {
		t.Error("the gate is open before the database is verified")
	}
	relaytest.NoError(t, n1.store.Heartbeat(ctx, n1.self))
	checkHalted(n1, "at the start", "")
	for range 3 {
		relaytest.NoError(t, n1.acknowledge(ctx))
	}
	checkHalted(n1, "after heartbeats", "")
	lastWrite := relaytest.Must(n1.store.LastHeartbeat(ctx))(t)

	relaytest.NoError(t, n1.store.SetCheckpoint(ctx, "n1", "", 1)) // the backup
	relaytest.Equal(t, "calls of forgetKeys before the halt", forgetCount, 0)
	checkHalted(n1, "on the backup", "restored from a backup")
	relaytest.Equal(t, "calls of forgetKeys at the halt", forgetCount, 1)
	checkHalted(n2, "another gateway on the backup", "gateway n1 has found that the database is in an earlier state")

	result := relaytest.Must(n1.Recover(ctx))(t)
	relaytest.Equal(t, "parts set to unknown", result.Unknown, 3)
	halt := (*halts)[0]
	if halt.Node != "n1" || !halt.IsActive() || halt.Since.IsZero() || !halt.LastWrite.Equal(lastWrite) {
		t.Errorf("halt = %+v, want node n1, a start time and the last write %s", halt, lastWrite)
	}
	checkHalted(n1, "after the recovery", "")
	checkHalted(n2, "another gateway after the recovery", "")
}

// TestGatewayThatReturnsAfterARecoveryStopsAlone recovers two gateways one after the other. The
// second recovery must not change messages that were sent after the first one.
func TestGatewayThatReturnsAfterARecoveryStopsAlone(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	returning, halts := newMembership(t, database, "n1")
	running, _ := newMembership(t, database, "n2")
	for _, m := range []*membership{returning, running} {
		relaytest.NoError(t, m.verify(ctx))
		relaytest.NoError(t, m.acknowledge(ctx))
	}
	relaytest.NoError(t, returning.store.SetCheckpoint(ctx, "n1", "", 0))
	relaytest.NoError(t, running.store.SetCheckpoint(ctx, "n2", "", 0))
	relaytest.NoError(t, running.verify(ctx))
	relaytest.Must(running.Recover(ctx))(t)

	relaytest.NoError(t, returning.verify(ctx))
	relaytest.NoError(t, running.verify(ctx))
	if returning.HaltReason() == "" || running.HaltReason() != "" {
		t.Errorf("halted = %q and %q, want only the returning gateway halted", returning.HaltReason(), running.HaltReason())
	}
	relaytest.Must(returning.Recover(ctx))(t)
	if halt := (*halts)[0]; halt.IsActive() {
		t.Errorf("halt of the second recovery = %+v, want one that does not hold", halt)
	}
}

// processCounter counts processed entries by body.
type processCounter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *processCounter) Parse(*intake.Item) (struct{}, []uint64, error) { return struct{}{}, nil, nil }

func (c *processCounter) Describe(intake.ParsedItem[struct{}]) string { return "" }

func (c *processCounter) Process(_ context.Context, items []intake.ParsedItem[struct{}]) ([]event.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range items {
		c.counts[string(items[i].Entry.Body)]++
	}
	return nil, nil
}

// TestGatewayThatCannotDetectTheRestoreReprocessesLostEntries restores a backup that is newer than the
// last heartbeat of gateway n2. The next heartbeat of n2 comes before gateway n1 detects the restore.
func TestGatewayThatCannotDetectTheRestoreReprocessesLostEntries(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	n1, _ := newMembership(t, database, "n1")
	n2, _ := newMembership(t, database, "n2")
	log := relaytest.Must(journal.Open(t.TempDir(), journal.Options{Logger: n2.log}))(t)
	defer func() { _ = log.Close() }()
	counter := &processCounter{counts: map[string]int{}}
	smsIntake := relaytest.Must(intake.New(event.SMS, "n2", log, event.NewStatuses(database, "n2"), counter, intake.Options{Logger: n2.log, Linger: -1}))(t)
	n2.intakes = map[event.Kind]*intake.Intake{event.SMS: smsIntake}
	runCtx, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() { _ = smsIntake.Run(runCtx) })
	defer workers.Wait()
	defer stop()
	acceptAndProcess := func(body string) {
		t.Helper()
		committed := smsIntake.Committed()
		relaytest.Must(smsIntake.Accept(ctx, &intake.Entry{Body: []byte(body)}))(t)
		relaytest.Eventually(t, body+" is processed", func() (any, bool) { return smsIntake.Committed(), smsIntake.Committed() > committed })
	}
	for _, m := range []*membership{n1, n2} {
		relaytest.NoError(t, m.verify(ctx))
		relaytest.NoError(t, m.acknowledge(ctx))
	}
	acceptAndProcess("after the backup")
	relaytest.NoError(t, n1.acknowledge(ctx))

	relaytest.NoError(t, n1.store.SetCheckpoint(ctx, "n1", "", 1)) // as if the backup was restored
	relaytest.NoError(t, n2.verify(ctx))
	relaytest.NoError(t, n2.acknowledge(ctx))
	for _, m := range []*membership{n1, n2} {
		relaytest.NoError(t, m.verify(ctx))
		if m.HaltReason() == "" {
			t.Fatalf("%s is not halted, want it halted", m.self.Node)
		}
	}
	relaytest.Must(n1.Recover(ctx))(t)
	relaytest.NoError(t, n2.verify(ctx))
	relaytest.Equal(t, "the reason why n2 is halted", n2.HaltReason(), "")
	relaytest.Equal(t, "number of times the entry was processed", counter.counts["after the backup"], 2)
}

func TestANewConnectionToARestoredDatabaseClosesTheGate(t *testing.T) {
	ctx := t.Context()
	database := dbtest.Open(t, db.Options{})
	for _, tc := range []struct {
		name, database string
		beats          uint64
		reason         string
	}{
		{"the acknowledged state", "", 2, ""},
		{"a later state, after a lost response to a heartbeat", "", 3, ""},
		{"an earlier state", "", 1, "restored from a backup"},
		{"another database", "other", 2, "another database"},
		{"an empty database", "none", 0, "is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := newMembership(t, database, "n1")
			relaytest.NoError(t, m.verify(ctx))
			m.witness = witness{Node: "n1", Database: m.database, Beats: 2, At: time.Now()}
			err := m.verifyConnection(ctx, func(context.Context) (string, uint64, error) {
				switch tc.database {
				case "":
					return m.database, tc.beats, nil
				case "none":
					return "", tc.beats, nil
				}
				return tc.database, tc.beats, nil
			})
			if got := m.HaltReason(); err != nil || tc.reason == "" && got != "" || !strings.Contains(got, tc.reason) || m.gate.Closed() != (tc.reason != "") {
				t.Errorf("halted = %q, gate closed = %v, error = %v; want a reason that contains %q", got, m.gate.Closed(), err, tc.reason)
			}
		})
	}
}

func TestNameOfARunningProcessIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name    string
		place   string // of the new process; the old process has the place "a"
		running bool   // whether the old process sends heartbeats
		taken   bool
	}{
		{"a restart in the same place, during the last heartbeat", "a", true, false},
		{"a copy of the data directory of a running gateway", "b", true, true},
		{"the data directory of a stopped gateway, on another machine", "b", false, false},
		{"an unknown place", "", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, database := t.Context(), dbtest.Open(t, db.Options{})
			register := func(place, url string) *membership {
				m, _ := newMembership(t, database, "n1")
				m.self.URL, m.self.Facts, m.watchFor = url, registry.Facts{registry.Incarnation: rand.Text(), registry.Place: place}, 250*time.Millisecond
				relaytest.NoError(t, m.verify(ctx))
				return m
			}
			oldProcess, newProcess := register("a", "http://old:1"), register(tc.place, "http://new:1")
			relaytest.NoError(t, oldProcess.store.Heartbeat(ctx, oldProcess.self))
			if tc.running {
				newProcess.watchFor = time.Minute
				beatCtx, cancel := context.WithCancel(ctx)
				var beating sync.WaitGroup
				beating.Go(func() {
					for relay.Sleep(beatCtx, 5*time.Millisecond) {
						_ = oldProcess.store.Heartbeat(beatCtx, oldProcess.self)
					}
				})
				defer beating.Wait()
				defer cancel()
			}
			taken, err := newProcess.checkName(ctx)
			if err != nil || taken != tc.taken || newProcess.gate.Closed() != tc.taken || tc.taken && !strings.Contains(newProcess.HaltReason(), "http://old:1") {
				t.Errorf("taken = %v (error %v), gate closed = %v, halted = %q; want taken = %v", taken, err, newProcess.gate.Closed(), newProcess.HaltReason(), tc.taken)
			}
		})
	}
}

// The start watches a registered name for heartbeats. The first heartbeat does not watch the name again.
func TestNameIsWatchedOnce(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	m, _ := newMembership(t, database, "n1")
	var logged strings.Builder
	m.log, m.watchFor = slog.New(slog.NewTextHandler(&logged, nil)), time.Millisecond
	m.self.Facts = registry.Facts{registry.Incarnation: "newcomer"}
	relaytest.NoError(t, m.verify(ctx), m.store.Heartbeat(ctx, registry.Gateway{Node: "n1", URL: "http://ended:1", Facts: registry.Facts{registry.Incarnation: "ended"}}))
	for range 2 {
		relaytest.Equal(t, "taken", relaytest.Must(m.checkName(ctx))(t), false)
	}
	relaytest.Equal(t, "number of times the name was watched", strings.Count(logged.String(), "is registered by another process"), 1)
}

func TestGatewayWithATakenNameStopsPermanently(t *testing.T) {
	ctx, database := t.Context(), dbtest.Open(t, db.Options{})
	m, _ := newMembership(t, database, "n1")
	m.self.Facts, m.claimed = registry.Facts{registry.Incarnation: "first"}, true
	relaytest.NoError(t, m.verify(ctx), m.store.Heartbeat(ctx, m.self))
	taken := relaytest.Must(m.checkName(ctx))(t)
	relaytest.Equal(t, "taken by the same process", taken, false)
	relaytest.NoError(t, m.store.Heartbeat(ctx, registry.Gateway{Node: "n1", URL: "http://other:1", Facts: registry.Facts{registry.Incarnation: "second"}}))
	relaytest.NoError(t, m.beat(ctx)) // finds the other process
	relaytest.NoError(t, m.verify(ctx), m.beat(ctx))
	if !m.gate.Closed() || !strings.Contains(m.HaltReason(), "http://other:1") {
		t.Errorf("gate closed = %v, halted = %q; want it closed, and the address of the other process", m.gate.Closed(), m.HaltReason())
	}
	if _, err := m.Recover(ctx); relay.KindOf(err) != relay.KindConflict {
		t.Errorf("Recover: error = %v, want a conflict", err)
	}
	gateways := relaytest.Must(m.store.Gateways(ctx))(t)
	relaytest.Equal(t, "the registered process", gateways[0].Facts[registry.Incarnation], "second")
}
