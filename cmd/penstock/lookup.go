package main

import (
	"context"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/httpout"
	ask "github.com/penstock/penstock/delivery/lookup"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/lookup"
)

// openLookup makes the way to who knows numbers.
func (d *daemon) openLookup(context.Context) error {
	store, c := d.back.records.Lookups, d.cfg.Lookup
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
	d.back.list = append(d.back.list, one)
	d.log.Info("back end", "name", one.Name, "kind", one.Note)
	var err error
	d.lookups, err = lookup.New(
		lookup.Deps{Backend: back, Cache: store, Credit: d.back.records.Credit, Logger: d.log},
		lookup.Options{Keep: c.Cache, Timeout: c.Timeout + c.Timeout/2})
	return err
}
