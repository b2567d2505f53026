package app

import (
	"context"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/delivery/queue"
	"github.com/penstock/penstock/delivery/queue/jobs"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sip"
)

// core is what processes traffic, without the surfaces that accept it.
type core struct {
	services
	back       backends
	out        outbound
	in         processing
	rules      *rule.Service
	membership *membership
	sending    sending
}

// openCore makes the services behind the journals, and the journals.
func (d *Gateway) openCore(ctx context.Context, back backends) (c core, err error) {
	out, err := d.openOutbound(back)
	if err != nil {
		return c, err
	}
	run, err := d.openServices(ctx, back, out)
	if err != nil {
		return c, err
	}
	reports, err := d.openReceipts(ctx, back.records, out.sender)
	if err != nil {
		return c, err
	}
	in, err := d.openProcessing(back, out, reports.handler, run.sims.meter)
	if err != nil {
		return c, err
	}
	rules, err := d.openRules(back.records, out.sender, in)
	if err != nil {
		return c, err
	}
	members, err := d.openMembership(ctx, back, in.intakes, run.ledgers)
	if err != nil {
		return c, err
	}
	if err := members.catchUp(ctx, back.embedded, d.log); err != nil {
		return c, err
	}
	follow(back.embedded, in.intakes)
	for _, store := range back.embedded {
		d.onStart(func(ctx context.Context) { store.watchIntegrity(ctx, d.log) })
	}
	sends, err := d.openSending(back.records, reports, in.intakes)
	if err != nil {
		return c, err
	}
	d.queue, d.sender = out.queue, out.worker.WithMessages(sends.messages, sends.submit.Simulated)
	d.jobs, d.work = run.jobs, jobs.Work{Runners: runnersOf(run.ledgers.Service, run.sims, run.calls), OnEnd: run.sims.actions.Ending}
	d.intakes, d.devices, d.membership = in.intakes, in.devices, members
	d.submit, d.carriers = sends.submit, sends.carriers
	return core{services: run, back: back, out: out, in: in, rules: rules, membership: members, sending: sends}, nil
}

// services have operations that run as jobs.
type services struct {
	archive *archive.Store
	ledgers *ledgerService
	sims    simServices
	calls   *sip.Service
	jobs    *jobs.Jobs
}

func (d *Gateway) openServices(ctx context.Context, back backends, out outbound) (s services, err error) {
	run, err := jobs.New(jobs.Deps{Store: back.records.Jobs, Redis: back.cache, Gate: d.gate, Logger: d.log}, jobs.Options{})
	if err != nil {
		return s, err
	}
	files := d.openArchive(back.records)
	ledgers, err := d.openLedgers(ctx, back.records, out.events, run)
	if err != nil {
		return s, err
	}
	sims, err := d.openSIMs(back.records, out, run)
	if err != nil {
		return s, err
	}
	calls, err := d.newSIP(back.records, files, out.mails, run)
	if err != nil {
		return s, err
	}
	return services{archive: files, ledgers: ledgers, sims: sims, calls: calls, jobs: run}, nil
}

// outbound are the ways out, and the queue of deliveries before them.
type outbound struct {
	queue    *queue.Queue
	worker   *worker.Worker // without SMS
	operator simOperator
	prober   prober
	preview  outbox.Previewer
	sender   outbox.Sender
	events   outbox.Caller // sends events to accounts' callback URLs
	mails    outbox.Mailer
}

func (d *Gateway) openOutbound(back backends) (out outbound, err error) {
	http, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow})
	if err != nil {
		return out, err
	}
	if out.operator, err = d.openOperator(); err != nil {
		return out, err
	}
	sims, err := operator.New(out.operator, servedBy(back.records))
	if err != nil {
		return out, err
	}
	secrets := func(ctx context.Context, acct relay.AccountID) ([]string, error) {
		a, err := back.records.Accounts.Account(ctx, acct)
		return a.WebhookSecrets, err
	}
	out.worker, err = worker.New(worker.Deps{
		HTTP: http, Mail: back.mail, Operator: sims, Secrets: secrets, Now: time.Now,
	}, worker.Options{})
	if err != nil {
		return out, err
	}
	out.prober = prober{out.worker, secrets}
	out.preview = previewer(out.worker, http, guard.New(d.cfg.Egress.Allow))
	out.queue, err = queue.New(queue.Deps{
		Store: back.records.Deliveries, Breakers: back.cache.Breakers(), Redis: back.cache,
		Schedule: delivery.Schedule(d.cfg.Delivery.Schedule), Gate: d.gate, Logger: d.log, Observe: d.observeDelivery, Tracer: d.tracer,
	}, queue.Options{})
	if err != nil {
		return out, err
	}
	callbackURL := func(ctx context.Context, acct relay.AccountID) (string, error) {
		a, err := back.records.Accounts.Account(ctx, acct)
		return a.CallbackURL, err // empty if it has none
	}
	out.sender = outbox.Sender{Store: back.records.Deliveries, Dispatcher: out.queue, Lease: out.queue.Lease(), Now: time.Now}
	out.events = outbox.Caller{Sender: out.sender, CallbackURL: callbackURL}
	out.mails = outbox.Mailer{Sender: out.sender, Domain: mailDomain(d.cfg.SMTP.From)}
	return out, nil
}

// observeDelivery measures a delivery that arrived.
func (d *Gateway) observeDelivery(one outbox.Delivery, o outbox.Outcome) {
	if o.State == outbox.Delivered || o.State == outbox.Simulated {
		d.timings.Delivered(string(one.Kind), time.Since(one.CreatedAt))
	}
}

// servedBy reports whether the relay that routed a delivery still exists and still
// delivers to the same SIM.
func servedBy(records *recordStores) operator.Serves {
	return func(ctx context.Context, one outbox.Delivery) (bool, error) {
		r, err := records.Inbound.Get(ctx, one.Account, inbound.Geographic, one.Relay)
		if relay.KindOf(err) == relay.KindNotFound {
			return false, nil
		}
		return r.Action.Name == inbound.MVNO && r.ICCID == one.SIM.ICCID, err
	}
}
