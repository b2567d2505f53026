package app

import (
	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sip"
)

// openArchive opens the archives of SIP calls.
func (d *Gateway) openArchive(r *recordStores) *archive.Store {
	files := archive.New(r.Files, r.Calls, archive.Options{})
	d.onClose(files.Close)
	return files
}

// newSIP creates the service for archives of SIP calls.
func (d *Gateway) newSIP(r *recordStores, files *archive.Store, mails outbox.Mailer, run job.Submitter) (*sip.Service, error) {
	return sip.New(sip.Deps{Jobs: r.Jobs, Submit: run, Archives: files, Mails: mails}, sip.Options{PublicURL: d.cfg.PublicURL})
}
