package rule_test

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

func TestARuleThatDoesNotOpenGoesOnWhenItOpens(t *testing.T) {
	g := newGateway(t)
	g.records.DB.SetSealer(dbtest.Sealer{})
	g.create(rule.Rule{When: "values.t > 30"})
	held := g.create(rule.Rule{When: "values.t > 20", For: 10 * time.Second})
	silent := g.create(rule.Rule{On: rule.OnSilent, SilentFor: time.Minute})
	batch := g.create(rule.Rule{Batch: rule.Batch{Every: 20 * time.Second}})
	tick := func(at float64) {
		g.clock.set(at)
		relaytest.NoError(t, g.rules.Tick(t.Context()))
	}
	g.ingest(warm("a", 1, 25))
	tick(5) // devices are watched from here on
	restore := dbtest.Tamper(t, g.records.DB, "rule", "doc", "id IN ('"+held+"', '"+silent+"', '"+batch+"')")
	g.rules = g.site.gateway().rules // which remembers no rule

	g.ingest(warm("b", 6, 31))
	g.wants("the rule that opens", []string{"6–"}, 1)
	for at := 30.0; at < 200; at += 20 {
		tick(at)
	}
	g.wants("the others have done nothing", []string{"6–"}, 1)
	g.rules.SaveFailures(t.Context())
	all := relaytest.Must(g.rules.Rules(t.Context(), 1))(t)
	relaytest.Equal(t, "what the page of a rule says", all[1].Failures.Last, relay.ErrUnopened.Error())

	restore()
	for at := 220.0; at < 400; at += 20 {
		tick(at)
	}
	// The alarm of the condition that held, those of two silent devices, and the batch.
	g.wants("all rules", []string{"6–", "11–", "61–", "66–"}, 5)
}
