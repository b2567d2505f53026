package rule_test

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// explained returns the explanation of the only rule for a frame.
func (g *gateway) explained(a iot.Arrival) string {
	g.t.Helper()
	frames, err := g.iot.NewPreview().Frames(g.t.Context(), []iot.Arrival{a})
	relaytest.NoError(g.t, err)
	explanations, err := g.rules.Explain(g.t.Context(), 1, *frames[0].Stored)
	relaytest.NoError(g.t, err)
	return explanations[0].String()
}

func TestExplanationsAreSentences(t *testing.T) {
	hot, hotter, cool, other := temperature("a", 1, 31), temperature("a", 2, 32), temperature("a", 3, 20), uplink("a", 4, map[string]any{"h": 50.0})
	for _, tc := range []struct {
		name  string
		rule  rule.Rule
		frame iot.Arrival
		want  string
	}{
		{"a raised alarm", rule.Rule{When: "values.t > 30"}, hot, `The rule "Rule" raised an alarm: the condition is met.`},
		{"an alarm that was already raised", rule.Rule{When: "values.t > 30"}, hotter, `The rule "Rule" raised no alarm: the condition is met, but an alarm was already raised.`},
		{"an alarm whose actions may run again", rule.Rule{When: "values.t > 30", Repeat: rule.Repeat{Always: true}}, hotter,
			`The rule "Rule" raised no alarm: the condition is met, but an alarm was already raised, whose actions may have run again.`},
		{"a condition that must stay met", rule.Rule{When: "values.t > 30", For: 90 * time.Minute}, hot,
			`The rule "Rule" raised no alarm: the condition is met and must stay met for 1h30m.`},
		{"an alarm after the condition was met for a time", rule.Rule{When: "values.t > 30", For: time.Second}, hotter, `The rule "Rule" raised an alarm: the condition was met for 1s.`},
		{"a cleared alarm", rule.Rule{When: "values.t > 30"}, cool, `The rule "Rule" cleared its alarm: the condition is not met.`},
		{"a missing value", rule.Rule{When: "values.t > 30"}, other, `The rule "Rule" raised no alarm: the condition cannot be evaluated, because values.t is missing.`},
		{"a forwarded frame", rule.Rule{}, cool, `The rule "Rule" forwarded the frame: the rule has no condition.`},
		{"a device that is not silent", rule.Rule{On: rule.OnSilent, SilentFor: time.Hour}, cool, `The rule "Rule" raised no alarm: the device was not silent.`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			g.create(tc.rule)
			g.ingest(hot, hotter, cool, other)
			relaytest.Equal(t, "the explanation", g.explained(tc.frame), tc.want)
		})
	}
}

func TestAnExplanationOfAnOutdatedRule(t *testing.T) {
	g := newGateway(t)
	id := g.create(rule.Rule{When: "values.t > 30"})
	hot, cool := temperature("a", 1, 31), temperature("a", 2, 20)
	g.ingest(hot, cool)
	g.clock.set(10)
	_, _, err := g.rules.Change(t.Context(), 1, id, func(r *rule.Rule) error {
		r.When = "values.t > 40"
		return nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the explanation of the alarm", g.explained(hot), `The rule "Rule" raised an alarm. It was changed after the frame; now the condition is not met.`)
	forwarding := newGateway(t)
	forwarding.ingest(cool)
	forwarding.clock.set(10)
	forwarding.create(rule.Rule{})
	relaytest.Equal(t, "the explanation of a rule that forwards later frames", forwarding.explained(cool), `The rule "Rule" was changed after the frame. It would forward the frame now.`)
	silent := newGateway(t)
	id = silent.create(rule.Rule{On: rule.OnSilent, SilentFor: time.Hour})
	silent.ingest(cool)
	silent.clock.set(10)
	_, _, err = silent.rules.Change(t.Context(), 1, id, func(r *rule.Rule) error {
		r.SilentFor = 2 * time.Hour
		return nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the explanation of a rule on silence", silent.explained(cool), `The rule "Rule" raised no alarm: the device was not silent.`)
	relaytest.Equal(t, "the explanation of the end", g.explained(cool), `The rule "Rule" cleared its alarm. It was changed after the frame; now the condition is not met.`)
}
