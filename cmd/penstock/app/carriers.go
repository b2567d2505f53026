package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/penstock/penstock/config"
	pdu "github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier/smpp"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/tracing"
)

// carriers are the binds to SMSCs.
type carriers struct {
	clients []*smpp.Client
	running sync.WaitGroup
	life    context.Context
	stop    context.CancelFunc
}

// openCarriers makes a client for each SMSC; start binds.
func (d *Gateway) openCarriers(in smppIntake) (*carriers, error) {
	all := new(carriers)
	all.life, all.stop = context.WithCancel(context.Background())
	for _, c := range d.cfg.Carriers {
		if c.Type != config.SMPP {
			continue
		}
		client, err := d.newSMPP(c, in)
		if err != nil {
			all.stop()
			return nil, err
		}
		all.clients = append(all.clients, client)
		d.check(admin.Backend{Name: "carrier " + c.Name, Note: "smpp", Check: client.Check, Optional: true})
	}
	return all, nil
}

func (d *Gateway) newSMPP(c config.Carrier, in smppIntake) (*smpp.Client, error) {
	o := smpp.Options{
		Name: c.Name, Addr: c.Addr, Accept: in.take, Logger: d.log,
		SystemID: c.SystemID, Password: c.Password, SystemType: c.SystemType, AddressRange: c.AddressRange,
		Bind: smpp.Bind(c.Bind), Alphabet: pdu.Alphabet(c.Alphabet), EnquireLink: c.EnquireLink, InFlight: c.InFlight,
		AnswerTimeout: c.AnswerTimeout,
	}
	if c.TLS == config.DirectTLS {
		roots, err := authorities(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("carrier %s: %w", c.Name, err)
		}
		o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return smpp.New(o)
}

// authorities reads a file of certificates; none means the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return roots, nil
}

// smppIntake takes what SMSCs send.
type smppIntake struct {
	intakes map[event.Kind]*intake.Intake
	tracer  *tracing.Tracer
}

// take writes what an SMSC sent to the journal of messages, or of receipts.
func (s smppIntake) take(ctx context.Context, a smpp.Arrival) (smpp.Wait, error) {
	kind, entry := event.SMS, carrier.SMPPEntry(a.Carrier, a.ID, a.PDU)
	if a.Receipt {
		kind, entry = event.Receipt, carrier.SMPPReceiptEntry(a.Carrier, a.ID, a.PDU)
	}
	span := s.tracer.Receive("", "receive smpp", time.Now())
	span.Set("penstock.carrier", a.Carrier)
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

// alphabets returns the default alphabet of each SMSC.
func alphabets(all []config.Carrier) map[string]pdu.Alphabet {
	out := make(map[string]pdu.Alphabet, len(all))
	for _, c := range all {
		out[c.Name] = pdu.Alphabet(c.Alphabet)
	}
	return out
}

// start binds to every carrier.
func (c *carriers) start() {
	for _, client := range c.clients {
		c.running.Go(func() { client.Run(c.life) })
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

// status returns the counters of each bind.
func (c *carriers) status() []admin.Carrier {
	out := make([]admin.Carrier, len(c.clients))
	for i, client := range c.clients {
		s := client.Status()
		out[i] = admin.Carrier{
			Name: s.Name, Bound: s.State == smpp.Bound, Binds: s.Binds, Messages: s.Messages, Receipts: s.Receipts,
			Malformed: s.Malformed, Refused: s.Refused, InFlight: s.InFlight,
		}
	}
	return out
}
