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

// carriers has the binds to SMSCs.
type carriers struct {
	clients    []*smpp.Client
	holders    map[string]*bindHolder // by carrier, for carriers that only one gateway may connect to
	running    sync.WaitGroup
	background context.Context
	stop       context.CancelFunc
}

// openCarriers creates a client for each bind; start connects the clients.
func (g *Gateway) openCarriers(pdus smppIntake, store *gateway.Store) (*carriers, error) {
	carriers := &carriers{holders: make(map[string]*bindHolder)}
	carriers.background, carriers.stop = context.WithCancel(context.Background())
	for _, c := range g.cfg.Carriers {
		if c.Type != config.SMPP {
			continue
		}
		if c.Gateways == config.OneGateway {
			carriers.holders[c.Name] = &bindHolder{carrier: c.Name, node: g.node, store: store, log: g.log}
		}
		for i, b := range c.Connections() {
			client, err := g.newSMPP(c, b, i, pdus)
			if err != nil {
				carriers.stop()
				return nil, err
			}
			carriers.clients = append(carriers.clients, client)
			backend := "carrier " + c.Name
			if len(c.Binds) > 0 {
				backend += " bind " + client.Status().Name
			}
			check := func(ctx context.Context) error {
				if carriers.otherHolder(c.Name) != "" {
					return nil
				}
				return client.Check(ctx)
			}
			g.addCheck(admin.Backend{Name: backend, Note: "smpp", Check: check, Optional: true})
		}
		if h := carriers.holders[c.Name]; h != nil {
			h.clients = carriers.clientsOf(c.Name)
		}
	}
	return carriers, nil
}

// newSMPP creates the client of a carrier's bind; index is its position in the configuration.
func (g *Gateway) newSMPP(c config.Carrier, b config.Bind, index int, pdus smppIntake) (*smpp.Client, error) {
	o := smpp.Options{
		Carrier: c.Name, Name: fmt.Sprintf("%d-%s", index+1, b.Type), Addr: b.Addr, Accept: pdus.accept, Logger: g.log,
		SystemID: b.SystemID, Password: b.Password, SystemType: c.SystemType, AddressRange: c.AddressRange,
		Bind: smpp.Bind(b.Type), Alphabet: pdu.Alphabet(c.Alphabet), EnquireLink: c.EnquireLink, MaxUnwritten: b.Window, InFlight: c.InFlight,
		AnswerTimeout: c.AnswerTimeout,
	}
	if c.TLS == config.DirectTLS {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // trusts the certificate authorities of the system by default
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

// smppIntake writes the PDUs of SMSCs to the journals.
type smppIntake struct {
	intakes map[event.Kind]*intake.Intake
	tracer  *tracing.Tracer
}

// accept writes a PDU to the journal of messages or of receipts.
func (s smppIntake) accept(ctx context.Context, received smpp.ReceivedPDU) (func(context.Context) error, error) {
	kind := event.SMS
	if received.Receipt {
		kind = event.Receipt
	}
	entry := carrier.SMPPEntry(kind, received.Carrier, received.Bind, received.ID, received.PDU)
	span := s.tracer.Receive("", "receive smpp", time.Now())
	span.Set("penstock.carrier", received.Carrier)
	span.Set("penstock.bind", received.Bind)
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

// otherHolder returns the name of the other gateway that holds the binds of a carrier, or "" if
// this gateway holds them or the holder is unknown.
func (c *carriers) otherHolder(carrier string) string {
	if h := c.holders[carrier]; h != nil {
		if node, ok := h.heldByOther(); ok {
			return node
		}
	}
	return ""
}

// start connects the binds. A holder connects the binds that only one gateway may have.
func (c *carriers) start() {
	for _, client := range c.clients {
		if c.holders[client.Status().Carrier] == nil {
			c.running.Go(func() { client.Run(c.background) })
		}
	}
	for _, h := range c.holders {
		c.running.Go(func() { h.run(c.background) })
	}
}

// unbind makes each client unbind as soon as its requests in progress are answered. It does not
// wait. c is nil if the start failed.
func (c *carriers) unbind() {
	if c != nil {
		c.stop()
	}
}

// close waits until all binds are closed or ctx ends. c is nil if the start failed.
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

// holdPeriod is the time for which a gateway holds the binds of a carrier without renewing the
// hold. After holdPeriod, another gateway can hold the binds.
const holdPeriod = 15 * time.Second

// bindHolder runs the binds of a carrier that only one gateway may connect to. Another gateway takes
// over when the holder stops or has not renewed its hold for holdPeriod. A holder that cannot
// reach the database keeps its binds: it cannot determine whether another gateway took over,
// and the SMSC refuses a second connection.
type bindHolder struct {
	carrier string
	node    string // of this gateway
	store   *gateway.Store
	clients []*smpp.Client
	resume  func() // resumes the queue of the carrier
	log     *slog.Logger
	current atomic.Pointer[string] // name of the gateway that holds the binds; nil if unknown
}

// heldByOther reports whether another gateway may hold the binds, and returns the name of that
// gateway; empty if unknown.
func (b *bindHolder) heldByOther() (node string, ok bool) {
	current := b.current.Load()
	if current == nil {
		return "", true
	}
	return *current, *current != b.node
}

// run connects the binds while this gateway holds them, until ctx ends.
func (b *bindHolder) run(ctx context.Context) {
	var binds sync.WaitGroup
	var unbind context.CancelFunc // nil while this gateway does not hold the binds
	for {
		node, err := b.hold(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				b.log.WarnContext(ctx, "cannot determine which gateway holds the binds", "carrier", b.carrier, "error", err)
			}
		case node == b.node && unbind == nil:
			var bindCtx context.Context
			bindCtx, unbind = context.WithCancel(ctx)
			for _, client := range b.clients {
				binds.Go(func() { client.Run(bindCtx) })
			}
			b.log.InfoContext(ctx, "this gateway holds the binds", "carrier", b.carrier)
		case node != b.node && unbind != nil:
			unbind()
			binds.Wait()
			unbind = nil
			b.log.WarnContext(ctx, "another gateway holds the binds", "carrier", b.carrier, "node", node)
		}
		if err == nil {
			b.current.Store(&node)
			b.resume()
		}
		pause := holdPeriod / 3
		if err != nil { // retry soon: one slow answer must not lose the hold
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
	releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := b.store.ReleaseCarrier(releaseCtx, b.carrier, b.node); err != nil {
		b.log.WarnContext(ctx, "binds not released: another gateway takes over later", "carrier", b.carrier, "error", err)
	}
}

func (b *bindHolder) hold(ctx context.Context) (node string, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdPeriod/5)
	defer cancel()
	return b.store.HoldCarrier(ctx, b.carrier, b.node, holdPeriod)
}
