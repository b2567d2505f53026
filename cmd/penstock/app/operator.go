package app

import (
	"github.com/penstock/penstock/config"
	simulated "github.com/penstock/penstock/delivery/embedded/operator"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/provisioning"
)

// simOperator changes the state of SIMs and sends messages to them.
type simOperator interface {
	provisioning.Operator
	operator.SIMs
}

// openOperator creates the client of the SIM operator.
func (d *Gateway) openOperator() (simOperator, error) {
	c := d.cfg.Operator
	var to simOperator = simulated.Simulator{}
	one := admin.Backend{Name: "operator", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return nil, err
		}
		back, err := operator.NewHTTP(client, operator.HTTPOptions{URL: c.URL, Token: c.Token, MaxConcurrent: c.AtOnce})
		if err != nil {
			return nil, err
		}
		to, one.Note = back, "http" // each command that cannot be given says so
	}
	d.check(one)
	d.log.Info("back end", "name", one.Name, "kind", one.Note)
	return to, nil
}
