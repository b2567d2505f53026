package app

import (
	"context"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
)

// openArchive opens the archives of SIP calls.
func (d *Gateway) openArchive(context.Context) error {
	d.archive = archive.New(d.backends.records.Files, d.backends.records.Calls, archive.Options{})
	d.closers = append(d.closers, func(context.Context) error { return d.archive.Close() })
	return nil
}

// openSIP opens the service for archives of SIP calls.
func (d *Gateway) openSIP(context.Context) (err error) {
	d.sip, err = sip.New(sip.Deps{
		Jobs: submitted{d.jobs, d.backends.records.Jobs}, Archives: d.archive, Deliveries: d.backends.records.Deliveries, Dispatcher: d.queue,
	}, sip.Options{
		PublicURL: d.cfg.PublicURL, MailDomain: mailDomain(d.cfg.SMTP.From), Lease: d.queue.Lease(),
	})
	return err
}

// intakeOptions limits how much of a journal is in memory: a post of call records may
// have 4 MiB, a frame about a kilobyte.
func (d *Gateway) intakeOptions(kind event.Kind) intake.Options {
	o := intake.Options{Logger: d.log, Stored: d.timings.Stored(string(kind)), Tracer: d.tracing}
	if kind == event.CDR {
		o.Batch, o.Workers = 32, 1
	}
	return o
}
