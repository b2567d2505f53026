package main

import (
	"context"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
)

// openCalls makes what archives SIP calls.
func (d *daemon) openCalls(context.Context) error {
	d.archives = archive.New(d.back.records.Files, d.back.records.Calls, archive.Options{})
	d.closers = append(d.closers, func(context.Context) error { return d.archives.Close() })
	return nil
}

// openRecords makes what hands archives out.
func (d *daemon) openRecords(context.Context) (err error) {
	d.records, err = sip.New(sip.Deps{
		Jobs: submitted{d.jobs, d.back.records.Jobs}, Archives: d.archives, Deliveries: d.back.records.Deliveries, Dispatcher: d.queue,
	}, sip.Options{
		PublicURL: d.cfg.PublicURL, MailDomain: mailDomain(d.cfg.SMTP.From), Lease: d.queue.Lease(),
	})
	return err
}

// intakeOptions bounds how much of a journal is in memory at one time: a post of
// call records may have 4 MiB, where a frame has a kilobyte.
func (d *daemon) intakeOptions(kind event.Kind) intake.Options {
	o := intake.Options{Logger: d.log}
	if kind == event.CDR {
		o.Batch, o.Workers = 32, 1
	}
	return o
}
