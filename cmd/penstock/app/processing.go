package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/decoders/catalog"
	pdu "github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/usage"
)

// processing has the journal of each kind of traffic and the services that process it.
type processing struct {
	intakes         map[event.Kind]*intake.Intake
	inbound         *inbound.Service
	smsProcessor    *carrier.Processor
	devices         *iot.Service
	rules           *rule.Service
	uplinkProcessor *uplink.Processor
}

// listedIntakes returns the intakes in the order in which metrics and the admin API list them.
func (p processing) listedIntakes() []*intake.Intake {
	return []*intake.Intake{p.intakes[event.Uplink], p.intakes[event.SMS], p.intakes[event.Receipt], p.intakes[event.CDR]}
}

func (g *Gateway) openProcessing(stores backends, senders outbound, receipts *message.ReceiptHandler, meter *usage.Meter) (p processing, err error) {
	p.inbound, err = inbound.New(inbound.Deps{
		Store: stores.records.Inbound, Deliveries: senders.sender,
		LateStatuses: carrier.NewLateStatuses(stores.records.statuses), Preview: senders.preview,
	}, inbound.Options{
		Settings: inbound.Settings{Zone: g.cfg.TimeZone, MailDomain: mailDomain(g.cfg.SMTP.From)},
		Lease:    senders.queue.Lease(), Retention: max(g.cfg.Journal.Retention, 7*24*time.Hour), Logger: g.log,
		JoinWait: g.cfg.Inbound.JoinWait,
	})
	if err != nil {
		return p, err
	}
	g.whileOpen(p.inbound.Run)
	var rules *rule.Service // set below, because rules and p.devices call each other
	p.devices = iot.New(stores.records.Devices, stores.cache.IoT(), stores.readings, catalog.Catalog{JavaScript: g.codecs.Compile}.Compile, iot.Options{
		Logger: g.log, Radio: iot.RadioDetail(g.cfg.Readings.RadioData), Now: func() time.Time { return g.clock.now() },
		Evaluate: func(ctx context.Context, acct relay.AccountID, v iot.Version, frames []iot.StoredFrame) error {
			return rules.Evaluate(ctx, acct, v, frames)
		},
	})
	g.whileOpen(p.devices.Run)
	p.uplinkProcessor = uplink.NewProcessor(p.devices, g.log)
	p.uplinkProcessor.FindDevice = stores.records.Devices.DeviceByIdentifier
	p.smsProcessor = carrier.NewProcessor(p.inbound)
	alphabets := make(map[string]pdu.Alphabet, len(g.cfg.Carriers)) // the default alphabet of each SMSC
	for _, c := range g.cfg.Carriers {
		alphabets[c.Name] = pdu.Alphabet(c.Alphabet)
	}
	p.smsProcessor.Add(carrier.SMPP, carrier.NewSMPP(alphabets))
	p.intakes = make(map[event.Kind]*intake.Intake)
	var errs [4]error
	p.intakes[event.Uplink], errs[0] = openIntake(g, event.Uplink, p.uplinkProcessor, stores.records.statuses(g.node))
	p.intakes[event.SMS], errs[1] = openIntake(g, event.SMS, p.smsProcessor, stores.records.statuses(g.node))
	p.intakes[event.Receipt], errs[2] = openIntake(g, event.Receipt, carrier.NewReceiptProcessor(receipts), stores.records.statuses(g.node))
	p.intakes[event.CDR], errs[3] = openIntake(g, event.CDR, cdr.NewProcessor(stores.records.Calls, meter), stores.records.statuses(g.node))
	if err := errors.Join(errs[:]...); err != nil {
		return p, err
	}
	rules, err = g.openRules(stores.records, senders.sender, p)
	p.rules = rules
	return p, err
}

// openIntake opens the journal of a kind of traffic with its processor.
func openIntake[T any](g *Gateway, kind event.Kind, p intake.Processor[T], statuses *event.Statuses) (*intake.Intake, error) {
	entries, err := journal.Open(filepath.Join(g.cfg.DataDir, "journal", string(kind)), journal.Options{
		Retention: g.cfg.Journal.Retention, MaxBytes: int64(g.cfg.Journal.MaxBytes), Logger: g.log.With("kind", string(kind)),
		Synced: g.timings.Fsync(string(kind)), KeepAll: g.clock.hasJumped, Need: intake.Need(kind, statuses),
	})
	if err != nil {
		return nil, err
	}
	g.onClose(entries.Close)
	o := intake.Options{Logger: g.log, OnCompleted: g.timings.Completed(string(kind)), Tracer: g.tracer}
	if kind == event.CDR {
		// Batches are small because a request with call records may be as large as 4 MiB; a frame is about a kilobyte.
		o.Batch, o.Workers = 32, 1
	}
	return intake.New(kind, g.node, entries, statuses, p, o)
}
