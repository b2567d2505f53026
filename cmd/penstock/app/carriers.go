package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/config"
	pdu "github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier/smpp"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/tracing"
)

// carriers are the binds to SMSCs.
type carriers struct {
	clients []*smpp.Client
	holders map[string]*holder // by the carriers whose SMSC allows one connection
	running sync.WaitGroup
	life    context.Context
	stop    context.CancelFunc
}

// openCarriers makes a client for each bind to an SMSC; start binds.
func (g *Gateway) openCarriers(in smppIntake, store *gateway.Store) (*carriers, error) {
	all := &carriers{holders: make(map[string]*holder)}
	all.life, all.stop = context.WithCancel(context.Background())
	for _, c := range g.cfg.Carriers {
		if c.Type != config.SMPP {
			continue
		}
		if c.Gateways == config.One {
			all.holders[c.Name] = &holder{carrier: c.Name, node: g.node, store: store, log: g.log}
		}
		for i, b := range c.Connections() {
			client, err := g.newSMPP(c, b, i, in)
			if err != nil {
				all.stop()
				return nil, err
			}
			all.clients = append(all.clients, client)
			backend := "carrier " + c.Name
			if len(c.Binds) > 0 {
				backend += " bind " + client.Status().Name
			}
			check := func(ctx context.Context) error {
				if all.otherHolder(c.Name) != "" {
					return nil
				}
				return client.Check(ctx)
			}
			g.check(admin.Backend{Name: backend, Note: "smpp", Check: check, Optional: true})
		}
		if h := all.holders[c.Name]; h != nil {
			h.clients = all.clientsOf(c.Name)
		}
	}
	return all, nil
}

// newSMPP makes the client of a carrier's bind; index is its place in the configuration.
func (g *Gateway) newSMPP(c config.Carrier, b config.Bind, index int, i smppIntake) (*smpp.Client, error) {
	o := smpp.Options{
		Carrier: c.Name, Name: fmt.Sprintf("%d-%s", index+1, b.Type), Addr: b.Addr, Accept: i.take, Logger: g.log,
		SystemID: b.SystemID, Password: b.Password, SystemType: c.SystemType, AddressRange: c.AddressRange,
		Bind: smpp.Bind(b.Type), Alphabet: pdu.Alphabet(c.Alphabet), EnquireLink: c.EnquireLink, Window: b.Window, InFlight: c.InFlight,
		AnswerTimeout: c.AnswerTimeout,
	}
	if c.TLS == config.DirectTLS {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // with the system's authorities
		if c.CAFile != "" {
			pem, err := os.ReadFile(c.CAFile)
			if err != nil {
				return nil, fmt.Errorf("carrier %s: %w", c.Name, err)
			}
			o.TLS.RootCAs = x509.NewCertPool()
			o.TLS.RootCAs.AppendCertsFromPEM(pem)
		}
	}
	return smpp.New(o)
}

// smppIntake takes what SMSCs send.
type smppIntake struct {
	intakes map[event.Kind]*intake.Intake
	tracer  *tracing.Tracer
}

// take writes what an SMSC sent to the journal of messages, or of receipts.
func (s smppIntake) take(ctx context.Context, a smpp.ReceivedPDU) (func(context.Context) error, error) {
	kind := event.SMS
	if a.Receipt {
		kind = event.Receipt
	}
	entry := carrier.SMPPEntry(kind, a.Carrier, a.Bind, a.ID, a.PDU)
	span := s.tracer.Receive("", "receive smpp", time.Now())
	span.Set("penstock.carrier", a.Carrier)
	span.Set("penstock.bind", a.Bind)
	staged, err := s.intakes[kind].Stage(tracing.NewContext(ctx, span.Parent()), &entry)
	if err != nil {
		span.End(time.Now(), err.Error())
	}
	return func(ctx context.Context) error {
		_, err := staged.Wait(ctx)
		span.End(time.Now(), errorText(err))
		return err
	}, err
}

// otherHolder returns the name of the other gateway that holds the binds of a carrier; empty
// if this one does, or if no known gateway does.
func (c *carriers) otherHolder(carrier string) string {
	h := c.holders[carrier]
	if h == nil {
		return ""
	}
	if node, ok := h.isOther(); ok {
		return node
	}
	return ""
}

// start binds to every SMSC, except those to which another gateway holds the binds.
func (c *carriers) start() {
	for _, client := range c.clients {
		if c.holders[client.Status().Carrier] == nil {
			c.running.Go(func() { client.Run(c.life) })
		}
	}
	for _, h := range c.holders {
		c.running.Go(func() { h.run(c.life) })
	}
}

// unbind begins to unbind: requests in flight are answered first. There are no carriers
// if the start failed.
func (c *carriers) unbind() {
	if c != nil {
		c.stop()
	}
}

// close waits until every carrier is unbound, or ctx ends.
func (c *carriers) close(ctx context.Context) error {
	if c == nil {
		return nil
	}
	ended := make(chan struct{})
	go func() { c.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("carriers: unbind: %w", ctx.Err())
	}
}

// status returns the state and the counters of each bind.
func (c *carriers) status() []admin.Bind {
	binds := make([]admin.Bind, len(c.clients))
	for i, client := range c.clients {
		s := client.Status()
		if node := c.otherHolder(s.Carrier); node != "" {
			s.Error = "gateway " + node + " holds the binds"
		}
		binds[i] = admin.Bind{
			Carrier: s.Carrier, Name: s.Name, Type: string(s.Type), Addr: s.Addr, Bound: s.State == smpp.Bound, Since: s.Since, Error: s.Error,
			Binds: s.Binds, Messages: s.Messages, Receipts: s.Receipts, Malformed: s.Malformed, Refused: s.Refused, InFlight: s.InFlight,
		}
	}
	return binds
}

// holdPeriod is the time after which another gateway may take the binds of a carrier from
// one that has not renewed its hold.
const holdPeriod = 15 * time.Second

// holder runs the binds of a carrier whose SMSC allows one connection: one gateway holds them
// at a time, and another takes over when it stops, or has not renewed for holdPeriod. While
// the holder cannot reach the database it keeps its binds: it cannot determine whether
// another gateway can, and the SMSC refuses a second connection.
type holder struct {
	carrier string
	node    string // of this gateway
	store   *gateway.Store
	clients []*smpp.Client
	resume  func() // wakes the carrier's queue
	log     *slog.Logger
	current atomic.Pointer[string] // the gateway that holds them; nil if that is unknown
}

// isOther reports whether another gateway may hold the binds. node is its name, empty until
// the database has answered.
func (h *holder) isOther() (node string, ok bool) {
	current := h.current.Load()
	if current == nil {
		return "", true
	}
	return *current, *current != h.node
}

// run holds the binds whenever no other gateway does, until ctx ends.
func (h *holder) run(ctx context.Context) {
	var binds sync.WaitGroup
	var unbind context.CancelFunc // nil while this gateway does not hold them
	for {
		node, err := h.hold(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				h.log.WarnContext(ctx, "cannot determine which gateway holds the binds", "carrier", h.carrier, "error", err)
			}
		case node == h.node && unbind == nil:
			var life context.Context
			life, unbind = context.WithCancel(ctx)
			for _, client := range h.clients {
				binds.Go(func() { client.Run(life) })
			}
			h.log.InfoContext(ctx, "this gateway holds the binds", "carrier", h.carrier)
		case node != h.node && unbind != nil:
			unbind()
			binds.Wait()
			unbind = nil
			h.log.WarnContext(ctx, "another gateway holds the binds", "carrier", h.carrier, "node", node)
		}
		if err == nil {
			h.current.Store(&node)
			h.resume()
		}
		pause := holdPeriod / 3
		if err != nil { // so that one slow answer does not lose the hold
			pause = time.Second
		}
		if !relay.Sleep(ctx, pause) {
			break
		}
	}
	binds.Wait()
	if unbind == nil {
		return
	}
	unbind()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := h.store.ReleaseCarrier(release, h.carrier, h.node); err != nil {
		h.log.WarnContext(ctx, "binds not released: another gateway takes over later", "carrier", h.carrier, "error", err)
	}
}

func (h *holder) hold(ctx context.Context) (node string, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdPeriod/5)
	defer cancel()
	return h.store.HoldCarrier(ctx, h.carrier, h.node, holdPeriod)
}
