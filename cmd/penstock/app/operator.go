package app

import (
	"github.com/penstock/penstock/config"
	simulated "github.com/penstock/penstock/delivery/embedded/operator"
	"github.com/penstock/penstock/delivery/httpout"
	lookupclient "github.com/penstock/penstock/delivery/lookup"
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
	var sims simOperator = simulated.Simulator{}
	backend := admin.Backend{Name: "operator", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		http, err := operator.NewHTTP(client, operator.HTTPOptions{URL: c.URL, Token: c.Token, MaxConcurrent: c.MaxConcurrent})
		if err != nil {
			return nil, err
		}
		sims, backend.Note = http, "http" // a command that fails reports the error
	}
	g.checkAndLog(backend)
	return sims, nil
}

// openLookup opens the service for number lookups.
func (g *Gateway) openLookup(records *recordStores) (*lookup.Service, error) {
	store, c := records.Lookups, g.cfg.Lookup
	var client lookup.Backend = lookupclient.NewSimulator(store)
	backend := admin.Backend{Name: "lookup", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		http, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		if client, err = lookupclient.NewHTTP(http, c.URL, c.Token); err != nil {
			return nil, err
		}
		backend.Note = "http" // a lookup that fails reports the error
	}
	g.checkAndLog(backend)
	return lookup.New(
		lookup.Deps{Backend: client, Cache: store, Credit: records.Credit, Logger: g.log},
		lookup.Options{CacheTTL: c.Cache, Timeout: c.Timeout + c.Timeout/2})
}

// checkAndLog adds a back end to /readyz and logs it.
func (g *Gateway) checkAndLog(backend admin.Backend) {
	g.check(backend)
	g.log.Info("back end", "name", backend.Name, "kind", backend.Note)
}
