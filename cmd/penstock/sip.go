package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/delivery/embedded/calls"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
)

// openCalls opens the records of SIP calls and the archives that are made of
// them.
func (d *daemon) openCalls(ctx context.Context) error {
	dir := filepath.Join(d.cfg.DataDir, "calls")
	store, err := calls.Open(ctx, dir)
	if err != nil {
		return err
	}
	d.calls = store
	d.closers = append(d.closers, func(context.Context) error { return store.Close() })
	d.archives, err = archive.Open(filepath.Join(dir, "archives"), store, archive.Options{})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func(context.Context) error { return d.archives.Close() })
	d.back.list = append(d.back.list, admin.Backend{Name: "calls", Note: "embedded", Check: store.Check})
	d.log.Info("back end", "name", "calls", "kind", "embedded")
	return nil
}

// openRecords makes what hands archives out.
func (d *daemon) openRecords(context.Context) (err error) {
	d.records, err = sip.New(sip.Deps{
		Jobs: submitted{d.jobs, d.back.db.Jobs()}, Archives: d.archives, Deliveries: d.back.db.Outbox(), Dispatcher: d.queue,
	}, sip.Options{
		Node: d.node, PublicURL: d.cfg.PublicURL, MailDomain: mailDomain(d.cfg.SMTP.From), Lease: d.queue.Lease(),
	})
	return err
}

// clearArchives removes archives whose handles have expired.
func (d *daemon) clearArchives(ctx context.Context) {
	for {
		if _, err := d.archives.Sweep(time.Now()); err != nil {
			d.log.Warn("expired archives were not removed", "error", err)
		}
		if !pause(ctx, time.Minute) {
			return
		}
	}
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
