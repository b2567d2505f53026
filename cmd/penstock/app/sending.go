package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"

	"github.com/penstock/penstock/config"
	outcarrier "github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/carrier/httpsms"
	"github.com/penstock/penstock/delivery/carrier/kannel"
	"github.com/penstock/penstock/delivery/carrier/simulator"
	"github.com/penstock/penstock/delivery/carrier/smpp"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/submit"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// receipts has the handler of receipts and delivery reports, and the signer of their URLs, to which
// carriers post.
type receipts struct {
	handler *message.ReceiptHandler
	signer  carrier.Signer
}

func (g *Gateway) openReceipts(ctx context.Context, records *recordStores, sender outbox.Sender) (r receipts, err error) {
	secret := g.cfg.ReceiptSecret
	if secret == "" {
		if secret, err = records.Gateways.Setting(ctx, "receipt_secret", rand.Text); err != nil {
			return r, err
		}
	}
	r.signer = carrier.NewSigner(secret)
	r.handler, err = message.NewReceiptHandler(message.ReceiptHandlerDeps{
		Store: records.Messages, Deliveries: sender, Logger: g.log, Events: carrier.NewLateStatuses(records.statuses),
	})
	if err == nil {
		g.whileOpen(r.handler.Run)
	}
	return r, err
}

// sendServices has the services that send the messages of accounts to carriers.
type sendServices struct {
	carriers *carriers
	submit   *submit.Submitter
	messages *message.Service
	signer   carrier.Signer
}

func (g *Gateway) openSending(records *recordStores, r receipts, intakes map[event.Kind]*intake.Intake) (s sendServices, err error) {
	s.signer = r.signer
	if s.carriers, err = g.openCarriers(smppIntake{intakes, g.tracer}, records.Gateways); err != nil {
		return s, err
	}
	if s.submit, err = g.openSubmit(records, r, s.carriers, intakes[event.Receipt]); err != nil {
		return s, err
	}
	s.messages, err = message.New(message.Deps{
		Store: records.Messages, Credit: records.Credit, Submitter: s.submit, CheckURL: guard.New(g.cfg.Egress.Allow).CheckURL,
	})
	return s, err
}

// stats returns the counters of outgoing messages of each carrier.
func (s sendServices) stats() []admin.Sending {
	var stats []admin.Sending
	for _, carrierStats := range s.submit.Stats() {
		stats = append(stats, admin.Sending(carrierStats))
	}
	return stats
}

// openSubmit opens the Submitter, which sends messages to carriers.
func (g *Gateway) openSubmit(records *recordStores, r receipts, carriers *carriers, receiptIntake *intake.Intake) (*submit.Submitter, error) {
	var routes []submit.Route
	rt := routeBuilder{Gateway: g, carriers: carriers, signer: r.signer, receiptIntake: receiptIntake}
	for _, c := range g.cfg.Carriers {
		if !c.Sends() {
			continue
		}
		route := submit.Route{Name: c.Name, Prefixes: c.Prefixes, PerSecond: float64(c.PerSecond), AcceptsOriginator: c.AcceptsOriginator}
		if err := rt.addConnections(&route, c); err != nil {
			return nil, fmt.Errorf("carrier %s: %w", c.Name, err)
		}
		routes = append(routes, route)
	}
	submitter, err := submit.New(submit.Deps{
		Store: countingStore{records.Messages, g.timings}, Reporter: r.handler, Routes: routes, Gate: g.gate, Logger: g.log, Tracer: g.tracer,
	}, submit.Options{})
	if err != nil {
		return nil, err
	}
	// A bind that is established resumes the Submitter.
	for _, client := range carriers.clients {
		name := client.Status().Carrier
		client.OnBound(func() { submitter.Resume(name) })
	}
	for name, h := range carriers.holders {
		h.resume = func() { submitter.Resume(name) }
	}
	return submitter, nil
}

// countingStore is a store of messages that counts the saved outcomes of their parts.
type countingStore struct {
	*message.Store
	timings *admin.Timings
}

// Settle saves outcomes and counts the outcomes that are final for the carrier.
func (c countingStore) Settle(ctx context.Context, outcomes []message.Outcome) ([]message.Message, error) {
	messages, err := c.Store.Settle(ctx, outcomes)
	if err != nil {
		return messages, err
	}
	for _, o := range outcomes {
		if !o.State.Waiting() {
			c.timings.Part(o.Carrier, o.Account.String(), string(o.State))
		}
	}
	return messages, nil
}

// routeBuilder adds the connections of carriers to routes.
type routeBuilder struct {
	*Gateway
	carriers      *carriers
	signer        carrier.Signer
	receiptIntake *intake.Intake // for the reports of the simulator
}

func (r *routeBuilder) addConnections(route *submit.Route, c config.Carrier) error {
	switch c.Type {
	case config.SMPP:
		clients := r.carriers.clientsOf(c.Name)
		for i, b := range c.Connections() {
			if b.Sends() {
				route.Connections = append(route.Connections, submit.Connection{
					Name: clients[i].Status().Name, Carrier: clients[i], Window: b.Window, PerSecond: float64(b.PerSecond),
				})
			}
		}
		if h := r.carriers.holders[c.Name]; h != nil {
			route.BoundElsewhere = func() bool { _, ok := h.heldByOther(); return ok }
		}
		route.ReceiptsByCarrierID, route.FitsSevenBit = true, clients[0].FitsSevenBit
		route.AcceptsOriginator = func(originator string) bool {
			return c.AcceptsOriginator(originator) && clients[0].AcceptsOriginator(originator)
		}
		return nil
	case config.Simulator:
		report := func(ctx context.Context, ref, state string) (func(context.Context) error, error) {
			entry := carrier.SimulatedReceipt(ref, state)
			staged, err := r.receiptIntake.Stage(ctx, &entry)
			return func(ctx context.Context) error { _, err := staged.Wait(ctx); return err }, err
		}
		route.Connections, route.Idempotent = []submit.Connection{{Carrier: simulator.New(report), Window: c.Window}}, true
		r.addCheck(admin.Backend{Name: "carrier simulator", Note: "simulated", Check: noCheck})
		r.log.Info("back end configured", "name", "carrier simulator", "kind", "simulated")
		return nil
	}
	route.Sequential = true
	// All addresses are allowed, because the URL is from the configuration.
	allAddresses := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	client, err := httpout.New(httpout.Options{Allow: allAddresses, Timeout: c.AnswerTimeout, OneShot: c.Type == config.Kannel})
	if err != nil {
		return err
	}
	receiptFormat := "json"
	if c.Type == config.Kannel {
		receiptFormat = "kannel"
	}
	receiptURL := func(ref string) string { return r.signer.ReceiptURL(r.cfg.PublicURL, receiptFormat, c.Name, ref) }
	var connection interface {
		outcarrier.Carrier
		Check(context.Context) error
	}
	if c.Type == config.Kannel {
		connection, err = kannel.New(client, kannel.Options{URL: c.URL, Username: c.Username, Password: c.Password, SMSC: c.SMSC, Report: receiptURL})
	} else {
		connection, err = httpsms.New(client, httpsms.Options{URL: c.URL, Token: c.Token, Report: receiptURL})
		route.Idempotent = true
	}
	if err != nil {
		return err
	}
	route.Connections = []submit.Connection{{Carrier: connection, Window: c.Window}}
	r.addCheck(admin.Backend{Name: "carrier " + c.Name, Note: c.Type, Check: connection.Check, Optional: true})
	return nil
}

// clientsOf returns the clients of a carrier's binds, in the order of the configuration.
func (c *carriers) clientsOf(carrier string) (clients []*smpp.Client) {
	for _, client := range c.clients {
		if client.Status().Carrier == carrier {
			clients = append(clients, client)
		}
	}
	return clients
}
