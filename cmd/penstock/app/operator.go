package app

import (
	"time"

	"github.com/penstock/penstock/config"
	simulated "github.com/penstock/penstock/delivery/embedded/operator"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
)

// simOperator changes the state of SIMs and sends messages to them.
type simOperator interface {
	provisioning.Operator
	operator.SIMs
}

// openOperator creates the client of the SIM operator.
func (d *Gateway) openOperator() error {
	c := d.cfg.Operator
	d.operator = simulated.Simulator{}
	one := admin.Backend{Name: "operator", Note: "simulator, simulated", Check: always}
	if c.Type == config.HTTP {
		client, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow, Timeout: c.Timeout})
		if err != nil {
			return err
		}
		back, err := operator.NewHTTP(client, operator.HTTPOptions{URL: c.URL, Token: c.Token, MaxConcurrent: c.AtOnce})
		if err != nil {
			return err
		}
		d.operator, one.Note = back, "http" // each command that cannot be given says so
	}
	d.backends.list = append(d.backends.list, one)
	d.log.Info("back end", "name", one.Name, "kind", one.Note)
	return nil
}

// openActions opens the service for SIM operations that run as jobs.
func (d *Gateway) openActions(events outbox.Caller) (err error) {
	r := d.backends.records
	d.actions, err = provisioning.New(provisioning.Deps{
		SIMs: r.SIMs, Subscribers: r.Subscribers, Orders: r.Orders, Jobs: r.Jobs, Operator: d.operator, Events: events, Limits: holder{d},
	}, provisioning.Options{ReportWithin: d.cfg.Operator.ReportWithin, Now: time.Now})
	return err
}
