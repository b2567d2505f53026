package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"

	"github.com/penstock/penstock/config"
	port "github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/carrier/httpsms"
	sendsms "github.com/penstock/penstock/delivery/carrier/kannel"
	"github.com/penstock/penstock/delivery/carrier/simulator"
	"github.com/penstock/penstock/delivery/carrier/smpp"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/submit"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
)

// openReceiptHandler opens the handler of receipts and delivery reports.
func (d *Gateway) openReceiptHandler(ctx context.Context) (err error) {
	if d.cfg.ReceiptSecret == "" {
		if d.cfg.ReceiptSecret, err = d.backends.records.Gateways.Setting(ctx, "receipt_secret", rand.Text); err != nil {
			return err
		}
	}
	d.signer = carrier.NewSigner(d.cfg.ReceiptSecret)
	store := d.backends.records.Messages
	d.receiptHandler, err = message.NewReceiptHandler(message.ReceiptHandlerDeps{
		Receipts: store, Reports: store, Deliveries: d.backends.records.Deliveries, Dispatcher: d.queue, Logger: d.log,
		Events: carrier.NewQuarantine(d.marks),
	}, message.ReceiptHandlerOptions{Lease: d.queue.Lease()})
	return err
}

// openSubmit opens the worker that submits messages to carriers.
func (d *Gateway) openSubmit(context.Context) (err error) {
	var routes []submit.Route
	for _, c := range d.cfg.Carriers {
		if !c.Sends() {
			continue
		}
		r := submit.Route{Name: c.Name, Prefixes: c.Prefixes, Window: c.Window, PerSecond: float64(c.PerSecond), AcceptsOriginator: c.AcceptsOriginator}
		if err := d.route(&r, c); err != nil {
			return fmt.Errorf("carrier %s: %w", c.Name, err)
		}
		routes = append(routes, r)
	}
	d.submit, err = submit.New(submit.Deps{
		Work: d.backends.records.Messages, Receipts: d.receiptHandler, Routes: routes, Logger: d.log, Tracer: d.tracing,
	}, submit.Options{})
	return err
}

// route completes a route with its carrier.
func (d *Gateway) route(r *submit.Route, c config.Carrier) error {
	switch c.Type {
	case config.SMPP:
		client := d.carriers.named(c.Name)
		client.OnBound(func() { d.submit.Resume(c.Name) })
		r.Carrier, r.Reports, r.FitsSevenBit = client, true, client.FitsSevenBit
		r.AcceptsOriginator = func(originator string) bool {
			return c.AcceptsOriginator(originator) && client.AcceptsOriginator(originator)
		}
		return nil
	case config.Simulator:
		r.Carrier, r.Idempotent = simulator.New(d.reportSimulated), true
		d.backends.list = append(d.backends.list, admin.Backend{Name: "carrier simulator", Note: "simulated", Check: always})
		d.log.Info("back end", "name", "carrier simulator", "kind", "simulated")
		return nil
	}
	r.InTurn = true
	client, err := httpout.New(httpout.Options{Allow: everywhere(), Timeout: c.AnswerTimeout, OneShot: c.Type == config.Kannel})
	if err != nil {
		return err
	}
	report := func(ref string) string { return d.signer.ReceiptURL(d.cfg.PublicURL, reportKind(c.Type), c.Name, ref) }
	var way interface {
		port.Carrier
		Check(context.Context) error
	}
	if c.Type == config.Kannel {
		way, err = sendsms.New(client, sendsms.Options{URL: c.URL, Username: c.Username, Password: c.Password, SMSC: c.SMSC, Report: report})
	} else {
		way, err = httpsms.New(client, httpsms.Options{URL: c.URL, Token: c.Token, Report: report})
		r.Idempotent = true
	}
	if err != nil {
		return err
	}
	r.Carrier = way
	d.backends.list = append(d.backends.list, admin.Backend{Name: "carrier " + c.Name, Note: c.Type, Check: way.Check, Optional: true})
	return nil
}

// reportKind returns the format of receipts of a type of carrier.
func reportKind(kind string) string {
	if kind == config.Kannel {
		return "kannel"
	}
	return "json"
}

// everywhere permits requests to all addresses: carriers are named by the operator's
// configuration, not by a customer.
func everywhere() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
}

// reportSimulated writes the simulator's reports to the journal of receipts.
func (d *Gateway) reportSimulated(ctx context.Context, ref, state string) (func(context.Context) error, error) {
	entry := carrier.SimulatedReceipt(ref, state)
	staged, err := d.intakes[event.Receipt].Stage(ctx, &entry)
	return func(ctx context.Context) error { _, err := staged.Wait(ctx); return err }, err
}

// named returns the client of a carrier.
func (c *carriers) named(name string) *smpp.Client {
	for _, client := range c.clients {
		if client.Status().Name == name {
			return client
		}
	}
	return nil
}

// sendingStats returns the counters of outgoing messages of each carrier.
func (d *Gateway) sendingStats() []admin.Sending {
	var out []admin.Sending
	for _, s := range d.submit.Stats() {
		out = append(out, admin.Sending(s))
	}
	return out
}
