// Package models_test compares the stores with small reference models, over histories of
// random operations.
package models_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/recordstest"
)

// TestMain sets the defaults -rapid.checks=5 and -rapid.nofailfile=true.
func TestMain(m *testing.M) {
	flag.Parse()
	isSet := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "5", "rapid.nofailfile": "true"} {
		if !isSet[name] {
			_ = flag.Set(name, value)
		}
	}
	os.Exit(m.Run())
}

// machine is a state machine of the core with its reference model. S is the model's state of the
// records of one account. Two states are equal if %#v prints them equally.
type machine[S any] struct {
	// begin creates the records of a new account and returns their model.
	begin func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (S, error)
	clone func(S) S
	// draw returns a random operation for a state. now is in seconds.
	draw func(t *rapid.T, s S, acct relay.AccountID, now float64) op[S]
	// read returns the records as text, and show returns the model in the same form.
	read func(ctx context.Context, r *recordstest.Records, s S, acct relay.AccountID) (string, error)
	show func(S) string
}

// op is an operation of the store. apply and run return its answer as text.
type op[S any] struct {
	name  string
	apply func(*S) string // on the model
	run   func(ctx context.Context, r *recordstest.Records) (string, error)
	// skipAlternatives are alternatives to apply for an operation that skips locked rows.
	skipAlternatives []func(*S) string
}

func newOp[S any](name string, apply func(*S) string, run func(ctx context.Context, r *recordstest.Records) (string, error)) op[S] {
	return op[S]{name: name, apply: apply, run: run}
}

// outcomes returns the functions that may apply the operation to the model.
func (o *op[S]) outcomes(concurrent bool) []func(*S) string {
	if !concurrent {
		return []func(*S) string{o.apply}
	}
	return append([]func(*S) string{o.apply}, o.skipAlternatives...)
}

// accounts counts the accounts of all histories: each has records of its own.
var accounts atomic.Int64

// TestTheCoreFollowsItsModels compares the state machines of the core with reference
// models on random histories. -rapid.checks=1000 runs more histories.
func TestTheCoreFollowsItsModels(t *testing.T) {
	server := dbtest.Shared(t)
	t.Run("credit", func(t *testing.T) { check(t, server, creditModel()) })
	t.Run("token claims", func(t *testing.T) { check(t, server, claimModel()) })
	t.Run("jobs", func(t *testing.T) { check(t, server, jobModel()) })
	t.Run("SIMs", func(t *testing.T) { check(t, server, simModel()) })
	t.Run("deliveries", func(t *testing.T) { check(t, server, deliveryModel()) })
	t.Run("message parts", func(t *testing.T) { check(t, server, messageModel()) })
}

// check compares a machine with its model on each engine. A step runs up to three operations
// at the same time, each at one of the gateways on the database. Their answers, and the records
// afterwards, must be those of the model for some order of the operations. A crash drops the
// memory of a gateway. On SQLite there is one gateway.
func check[S any](t *testing.T, server *dbtest.Postgres, m machine[S]) {
	t.Run("on SQLite", func(t *testing.T) { m.histories(t, db.Options{Dir: t.TempDir()}, 1) })
	t.Run("on PostgreSQL", func(t *testing.T) { m.histories(t, db.Options{URL: server.NewDatabase(t)}, 2) })
}

func (m machine[S]) histories(t *testing.T, o db.Options, gateways int) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history[S]{machine: m, options: o, gateways: make([]*recordstest.Records, gateways), acct: relay.AccountID(accounts.Add(1))}
		h.options.Now = func() time.Time { return dbtest.TimeAt(float64(h.now.Load())) }
		defer h.close(rt)
		for i := range h.gateways {
			h.open(rt, i)
		}
		s, err := m.begin(context.Background(), h.gateways[0], h.acct)
		if err != nil {
			rt.Fatal(err)
		}
		h.states = []S{s}
		rt.Repeat(map[string]func(*rapid.T){
			"operations": h.step, "operations again": h.step, "more operations": h.step,
			"time":  func(t *rapid.T) { h.now.Add(rapid.Int64Range(1, 12).Draw(t, "seconds")) },
			"crash": func(t *rapid.T) { h.crash(t, rapid.IntRange(0, gateways-1).Draw(t, "gateway")) },
		})
	})
}

// history is one random run of a machine.
type history[S any] struct {
	machine[S]
	options  db.Options
	gateways []*recordstest.Records
	acct     relay.AccountID
	now      atomic.Int64 // seconds
	states   []S          // the possible states of the model
}

func (h *history[S]) open(t *rapid.T, i int) {
	database, err := db.Open(context.Background(), h.options)
	if err != nil {
		t.Fatal(err)
	}
	h.gateways[i] = recordstest.New(database)
}

func (h *history[S]) crash(t *rapid.T, i int) {
	if err := h.gateways[i].Close(); err != nil {
		t.Fatal(err)
	}
	h.open(t, i)
}

func (h *history[S]) close(t *rapid.T) {
	for _, r := range h.gateways {
		if r == nil {
			continue
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// step runs one to three operations at the same time.
func (h *history[S]) step(t *rapid.T) {
	ops := make([]op[S], rapid.IntRange(1, 3).Draw(t, "operations"))
	gateways := make([]int, len(ops))
	for i := range ops {
		ops[i] = h.draw(t, h.clone(h.states[0]), h.acct, float64(h.now.Load()))
		gateways[i] = rapid.IntRange(0, len(h.gateways)-1).Draw(t, "gateway")
		t.Logf("%d: %s at gateway %d", i, ops[i].name, gateways[i])
	}
	answers, errs := make([]string, len(ops)), make([]error, len(ops))
	var running sync.WaitGroup
	for i := range ops {
		running.Go(func() { answers[i], errs[i] = ops[i].run(context.Background(), h.gateways[gateways[i]]) })
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", ops[i].name, err)
		}
	}
	got, err := h.read(context.Background(), h.gateways[0], h.clone(h.states[0]), h.acct)
	if err != nil {
		t.Fatal(err)
	}
	h.states = h.explain(t, ops, answers, got)
}

// explain returns the states of the model that agree with the answers and the records.
func (h *history[S]) explain(t *rapid.T, ops []op[S], answers []string, got string) (states []S) {
	var refused []string
	seen := make(map[string]bool)
	for _, s := range h.states {
		for _, order := range orders(len(ops)) {
			h.replay(s, ops, order, make([]string, len(ops)), func(s S, modelAnswers []string) {
				key := fmt.Sprintf("%#v", s)
				switch {
				case !slices.Equal(modelAnswers, answers) || h.show(s) != got:
					refused = append(refused, fmt.Sprintf("in the order %v: answers %q, then\n%s", order, modelAnswers, h.show(s)))
				case !seen[key]:
					seen[key] = true
					states = append(states, s)
				}
			})
		}
	}
	if len(states) == 0 {
		t.Fatalf("answers %q, then\n%s\nno order of the operations explains this; the model has\n%s", answers, got, strings.Join(refused, "\n"))
	}
	return states
}

// replay applies operations to the model in an order and calls fn with each possible state.
func (h *history[S]) replay(s S, ops []op[S], order []int, answers []string, fn func(S, []string)) {
	if len(order) == 0 {
		fn(s, answers)
		return
	}
	for _, apply := range ops[order[0]].outcomes(len(ops) > 1) {
		s := h.clone(s)
		answers[order[0]] = apply(&s)
		h.replay(s, ops, order[1:], answers, fn)
	}
}

// orders returns the permutations of the first n numbers.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var permutations [][]int
	for _, order := range orders(n - 1) {
		for i := range n {
			permutations = append(permutations, slices.Insert(slices.Clone(order), i, n-1))
		}
	}
	return permutations
}

// kindOf returns the kind of err as the answer if callers react to it; otherwise answer and err.
func kindOf(answer string, err error) (string, error) {
	switch relay.KindOf(err) {
	case relay.KindNotFound, relay.KindNoCredit, relay.KindConflict:
		return relay.KindOf(err).String(), nil
	}
	return answer, err
}
