package app

import (
	"github.com/penstock/penstock/config"
	simulated "github.com/penstock/penstock/delivery/embedded/operator"
	"github.com/penstock/penstock/delivery/httpout"
	ask "github.com/penstock/penstock/delivery/lookup"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/provisioning"
)

// simOperator changes the state of SIMs and sends messages to them.
type simOperator interface {
	provisioning.Operator
	operator.SIMs
}

// openOperator creates the client of the SIM operator.
func (g *Gateway) openOperator() (simOperator, error) {
	c := g.cfg.Operator
	var to simOperator = simulated.Simulator{}
	backend := admin.Backend{Name: "operator", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		http, err := operator.NewHTTP(client, operator.HTTPOptions{URL: c.URL, Token: c.Token, MaxConcurrent: c.AtOnce})
		if err != nil {
			return nil, err
		}
		to, backend.Note = http, "http" // each command that cannot be given reports that
	}
	g.checkAndLog(backend)
	return to, nil
}

// openLookup opens the service for number lookups.
func (g *Gateway) openLookup(records *recordStores) (*lookup.Service, error) {
	store, c := records.Lookups, g.cfg.Lookup
	var back lookup.Backend = ask.NewSimulator(store)
	one := admin.Backend{Name: "lookup", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		if back, err = ask.NewHTTP(client, c.URL, c.Token); err != nil {
			return nil, err
		}
		one.Note = "http" // each lookup that cannot be made reports that
	}
	g.checkAndLog(one)
	return lookup.New(
		lookup.Deps{Backend: back, Cache: store, Credit: records.Credit, Logger: g.log},
		lookup.Options{CacheTTL: c.Cache, Timeout: c.Timeout + c.Timeout/2})
}

// checkAndLog adds a back end that is not one of the stores.
func (g *Gateway) checkAndLog(backend admin.Backend) {
	g.check(backend)
	g.log.Info("back end", "name", backend.Name, "kind", backend.Note)
}
