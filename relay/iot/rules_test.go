package iot_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// recorder is a rule evaluator that records the frames.
type recorder struct {
	frames []string
	err    error
}

func (r *recorder) Evaluate(_ context.Context, acct relay.AccountID, v iot.Version, frames []iot.StoredFrame) error {
	if v.Rules == 0 || acct != 1 {
		return errors.New("an account without rules")
	}
	for _, f := range frames {
		r.frames = append(r.frames, f.RecordID)
	}
	return r.err
}

// newGatewayWithRule returns a gateway whose account 1 has a rule.
func newGatewayWithRule(t *testing.T) (*gateway, *recorder) {
	t.Helper()
	g, r := newGateway(t), &recorder{}
	database := dbtest.Open(t, db.Options{})
	g.records = iot.NewStore(database, rule.OnDevice)
	relaytest.NoError(t, rule.NewStore(database).Create(t.Context(), 1, rule.Rule{ID: "r1"}), g.records.CreateDecoder(t.Context(), 1, decoder("d1", "temperature", "humidity")),
		g.records.CreateDecoder(t.Context(), 2, decoder("d1", "temperature")))
	g.options.Evaluate = r.Evaluate
	g.start()
	return g, r
}

func TestRulesEvaluateStoredFrames(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*iot.Arrival)
		want   bool
	}{
		"an uplink":                           {func(*iot.Arrival) {}, true},
		"a join":                              {func(a *iot.Arrival) { a.Frame.Kind, a.Frame.Object = decoders.Join, nil }, true},
		"an uplink without values":            {func(a *iot.Arrival) { a.Frame.Object = nil }, true},
		"a replay":                            {func(a *iot.Arrival) { a.SkipRules = true }, false},
		"a refused frame":                     {func(a *iot.Arrival) { a.Frame.Encrypted = true }, false},
		"a frame without a mapped key":        {func(a *iot.Arrival) { a.Frame.Object = values("other", 1.0) }, false},
		"a simulated frame":                   {func(a *iot.Arrival) { a.Frame.Simulated = true }, false},
		"a duplicate":                         {func(a *iot.Arrival) { a.Frame.DedupID = "first" }, false},
		"a supplement of another frame":       {func(a *iot.Arrival) { a.Frame.Kind, a.Frame.Supplement = decoders.Location, true }, false},
		"a frame of an account without rules": {func(a *iot.Arrival) { a.Account, a.Frame.Identifier = 2, "another" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := newGatewayWithRule(t)
			g.mustStore(g.frame("first", values("temperature", 20.0)))
			a := g.frame("second", values("temperature", 21.0))
			tc.change(&a)
			g.ingest(a)
			if got := slices.Contains(r.frames, "second"); got != tc.want || !slices.Contains(r.frames, "first") {
				t.Errorf("evaluated %q, want the second frame among them: %v", r.frames, tc.want)
			}
		})
	}
}

func TestAFrameIsStoredBeforeItsRulesAreEvaluated(t *testing.T) {
	g, r := newGatewayWithRule(t)
	r.err = errors.New("the database is down")
	if _, err := g.Ingest(t.Context(), []iot.Arrival{g.frame("first", values("temperature", 20.0))}); !errors.Is(err, r.err) {
		t.Fatalf("got %v", err)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=20"}) {
		t.Errorf("history %q, want temperature=20", got)
	}
	r.err = nil
	g.mustStore(g.frame("first", values("temperature", 20.0)))
	if !slices.Equal(r.frames, []string{"first", "first"}) {
		t.Errorf("evaluated %q, want the frame twice", r.frames)
	}
}

func TestAFrameWaitsForEarlierOnesBeforeItsRules(t *testing.T) {
	g, r := newGatewayWithRule(t)
	a := g.frame("first", values("temperature", 20.0))
	errEarlier := errors.New("the earlier frames never end")
	a.WaitForEarlier = func(context.Context) error {
		if len(g.history(1)) != 1 || len(r.frames) != 0 {
			t.Errorf("the frame waits before it is stored or after it was evaluated")
		}
		return errEarlier
	}
	if _, err := g.Ingest(t.Context(), []iot.Arrival{a}); !errors.Is(err, errEarlier) || len(r.frames) != 0 {
		t.Errorf("got error %v, evaluated %q; want the error of the wait", err, r.frames)
	}
}
