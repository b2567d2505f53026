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
func (d *Gateway) openCarriers(context.Context) error {
	d.carriers.life, d.carriers.stop = context.WithCancel(context.Background())
	for _, c := range d.cfg.Carriers {
		if c.Type != config.SMPP {
			continue
		}
		client, err := d.newSMPP(c)
		if err != nil {
			return err
		}
		d.carriers.clients = append(d.carriers.clients, client)
		d.backends.list = append(d.backends.list, admin.Backend{
			Name: "carrier " + c.Name, Note: "smpp", Check: client.Check, Optional: true,
		})
	}
	return nil
}

func (d *Gateway) newSMPP(c config.Carrier) (*smpp.Client, error) {
	o := smpp.Options{
		Name: c.Name, Addr: c.Addr, Accept: d.takeSMPP, Logger: d.log,
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

// takeSMPP writes what an SMSC sent to the journal of messages, or of receipts.
func (d *Gateway) takeSMPP(ctx context.Context, a smpp.Arrival) (smpp.Wait, error) {
	kind, entry := event.SMS, carrier.SMPPEntry(a.Carrier, a.ID, a.PDU)
	if a.Receipt {
		kind, entry = event.Receipt, carrier.SMPPReceiptEntry(a.Carrier, a.ID, a.PDU)
	}
	span := d.tracing.Receive("", "receive smpp", time.Now())
	span.Set("penstock.carrier", a.Carrier)
	staged, err := d.intakes[kind].Stage(tracing.NewContext(ctx, span.Parent()), &entry)
	if err != nil {
		span.End(time.Now(), err.Error())
	}
	return func(ctx context.Context) error {
		_, err := staged.Wait(ctx)
		span.End(time.Now(), textOf(err))
		return err
	}, err
}

// textOf is the text of an error, empty for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
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

// unbind begins to unbind: requests in flight are answered first.
func (c *carriers) unbind() {
	if c.stop != nil {
		c.stop()
	}
}

// close waits until every carrier is unbound, or ctx ends.
func (c *carriers) close(ctx context.Context) error {
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
