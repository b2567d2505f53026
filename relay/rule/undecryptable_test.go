package rule_test

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

func TestAnUndecryptableRuleIsEvaluatedOnceItDecrypts(t *testing.T) {
	g := newGateway(t)
	g.records.DB.SetSealer(dbtest.Sealer{})
	g.create(rule.Rule{When: "values.t > 30"})
	lasting := g.create(rule.Rule{When: "values.t > 20", For: 10 * time.Second})
	silent := g.create(rule.Rule{On: rule.OnSilent, SilentFor: time.Minute})
	batch := g.create(rule.Rule{Batch: rule.Batch{Every: 20 * time.Second}})
	tick := func(now float64) {
		g.clock.set(now)
		relaytest.NoError(t, g.rules.Tick(t.Context()))
	}
	g.ingest(temperature("a", 1, 25))
	tick(5) // enrols the devices
	restore := dbtest.Tamper(t, g.records.DB, "rule", "doc", "id IN ('"+lasting+"', '"+silent+"', '"+batch+"')")
	g.rules = g.site.gateway().rules // has no cached rules

	g.ingest(temperature("b", 6, 31))
	g.wantAlarmsAndDeliveries("the rule that decrypts", []string{"6–"}, 1)
	for now := 30.0; now < 200; now += 20 {
		tick(now)
	}
	g.wantAlarmsAndDeliveries("the other rules are not evaluated", []string{"6–"}, 1)
	g.rules.SaveFailures(t.Context())
	rules := relaytest.Must(g.rules.Rules(t.Context(), 1))(t)
	relaytest.Equal(t, "the last failure of a rule", rules[1].Failures.Last, relay.ErrUndecryptable.Error())

	restore()
	for now := 220.0; now < 400; now += 20 {
		tick(now)
	}
	// Alarms: when > 30 at 6, when > 20 at 11, two silent devices. The fifth delivery is the batch.
	g.wantAlarmsAndDeliveries("all rules", []string{"6–", "11–", "61–", "66–"}, 5)
}
