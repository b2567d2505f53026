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
	var operatorClient simOperator = simulated.Simulator{}
	backend := admin.Backend{Name: "operator", Note: "simulated", Check: noCheck}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		httpOperator, err := operator.NewHTTP(client, operator.HTTPOptions{URL: c.URL, Token: c.Token, MaxConcurrent: c.MaxConcurrent})
		if err != nil {
			return nil, err
		}
		operatorClient, backend.Note = httpOperator, "http" // without a check: a failed command reports the error
	}
	g.registerBackend(backend)
	return operatorClient, nil
}

// openLookup opens the service for number lookups.
func (g *Gateway) openLookup(records *recordStores) (*lookup.Service, error) {
	store, c := records.Lookups, g.cfg.Lookup
	var client lookup.Backend = lookupclient.NewSimulator(store)
	backend := admin.Backend{Name: "lookup", Note: "simulated", Check: noCheck}
	if c.Type == config.HTTP {
		httpClient, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		if client, err = lookupclient.NewHTTP(httpClient, c.URL, c.Token); err != nil {
			return nil, err
		}
		backend.Note = "http" // without a check: a failed lookup reports the error
	}
	g.registerBackend(backend)
	return lookup.New(
		lookup.Deps{Backend: client, Cache: store, Credit: records.Credit, Logger: g.log},
		lookup.Options{CacheTTL: c.Cache, Timeout: c.Timeout + c.Timeout/2})
}

// registerBackend adds a back end to /readyz and logs it.
func (g *Gateway) registerBackend(backend admin.Backend) {
	g.addCheck(backend)
	g.log.Info("back end configured", "name", backend.Name, "kind", backend.Note)
}
