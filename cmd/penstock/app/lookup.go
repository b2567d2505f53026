package app

import (
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/httpout"
	ask "github.com/penstock/penstock/delivery/lookup"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/lookup"
)

// openLookup opens the service for number lookups.
func (d *Gateway) openLookup(records *recordStores) (*lookup.Service, error) {
	store, c := records.Lookups, d.cfg.Lookup
	var back lookup.Backend = ask.NewSimulator(store)
	one := admin.Backend{Name: "lookup", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		if back, err = ask.NewHTTP(client, ask.HTTPOptions{URL: c.URL, Token: c.Token}); err != nil {
			return nil, err
		}
		one.Note = "http" // each lookup that cannot be made says so
	}
	d.check(one)
	d.log.Info("back end", "name", one.Name, "kind", one.Note)
	return lookup.New(
		lookup.Deps{Backend: back, Cache: store, Credit: records.Credit, Logger: d.log},
		lookup.Options{CacheTTL: c.Cache, Timeout: c.Timeout + c.Timeout/2})
}
