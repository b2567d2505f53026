package app

import (
	"context"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/httpout"
	ask "github.com/penstock/penstock/delivery/lookup"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/lookup"
)

// openLookup opens the service for number lookups.
func (d *Gateway) openLookup(context.Context) error {
	store, c := d.backends.records.Lookups, d.cfg.Lookup
	var back lookup.Backend = ask.NewSimulator(store)
	one := admin.Backend{Name: "lookup", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return err
		}
		if back, err = ask.NewHTTP(client, ask.HTTPOptions{URL: c.URL, Token: c.Token}); err != nil {
			return err
		}
		one.Note = "http" // each lookup that cannot be made says so
	}
	d.backends.list = append(d.backends.list, one)
	d.log.Info("back end", "name", one.Name, "kind", one.Note)
	var err error
	d.lookup, err = lookup.New(
		lookup.Deps{Backend: back, Cache: store, Credit: d.backends.records.Credit, Logger: d.log},
		lookup.Options{CacheTTL: c.Cache, Timeout: c.Timeout + c.Timeout/2})
	return err
}
