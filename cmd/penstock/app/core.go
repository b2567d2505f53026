package app

import (
	"context"
	"maps"
	"net/url"
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
	"github.com/penstock/penstock/relay/usage"
)

// core has the services that process traffic. The surfaces accept the traffic.
type core struct {
	services
	stores     backends
	senders    outbound
	proc       processing
	rules      *rule.Service
	membership *membership
	sending    sendServices
}

// openCore opens the journals, and the services that process their entries.
func (g *Gateway) openCore(ctx context.Context, stores backends) (core, error) {
	senders, err := g.openOutbound(stores)
	if err != nil {
		return core{}, err
	}
	services, err := g.openServices(ctx, stores, senders)
	if err != nil {
		return core{}, err
	}
	reports, err := g.openReceipts(ctx, stores.records, senders.sender)
	if err != nil {
		return core{}, err
	}
	proc, err := g.openProcessing(stores, senders, reports.handler, services.sims.meter)
	if err != nil {
		return core{}, err
	}
	members, err := g.openMembership(ctx, stores, proc.intakes, services.ledgers)
	if err != nil {
		return core{}, err
	}
	if err := members.catchUp(ctx, stores.embedded); err != nil {
		return core{}, err
	}
	trackPositions(stores.embedded, proc.intakes)
	for _, store := range stores.embedded {
		g.onStart(func(ctx context.Context) { store.watchIntegrity(ctx, g.log) })
	}
	sending, err := g.openSending(stores.records, reports, proc.intakes)
	if err != nil {
		return core{}, err
	}
	g.queue, g.attempter = senders.queue, senders.worker.WithMessages(sending.messages, sending.submit.Simulated)
	runners := services.ledgers.Runners()
	maps.Copy(runners, services.sims.actions.Runners(services.sims.meter))
	runners[sip.Kind] = services.calls.Run
	runners[usage.CDRKind] = services.sims.usage.RunCDR
	runners[usage.ReportKind] = services.sims.usage.RunReport
	runners[usage.BlockKind] = services.sims.meter.RunBlock
	g.jobs, g.work = services.jobs, jobs.Work{Runners: runners, OnEnd: services.sims.actions.Ending}
	g.intakes, g.devices, g.membership = proc.intakes, proc.devices, members
	g.submit, g.carriers = sending.submit, sending.carriers
	return core{services: services, stores: stores, senders: senders, proc: proc, rules: proc.rules, membership: members, sending: sending}, nil
}

// services has the services whose operations run as jobs.
type services struct {
	archive *archive.Store
	ledgers *ledgerService
	sims    simServices
	calls   *sip.Service
	jobs    *jobs.Jobs
}

func (g *Gateway) openServices(ctx context.Context, stores backends, senders outbound) (s services, err error) {
	jobService, err := jobs.New(jobs.Deps{Store: stores.records.Jobs, Redis: stores.cache, Gate: g.gate, Logger: g.log}, jobs.Options{})
	if err != nil {
		return s, err
	}
	records := stores.records
	files := archive.New(records.Files, records.Calls)
	g.onClose(files.Close)
	ledgers, err := g.openLedgers(ctx, stores.records, senders.events, jobService)
	if err != nil {
		return s, err
	}
	sims := g.openSIMs(stores.records, senders, jobService)
	calls := sip.New(sip.Deps{Jobs: records.Jobs, Submit: jobService, Archives: files, Mails: senders.mails, PublicURL: g.cfg.PublicURL})
	return services{archive: files, ledgers: ledgers, sims: sims, calls: calls, jobs: jobService}, nil
}

// outbound has the queue of deliveries and the clients that perform them.
type outbound struct {
	queue    *queue.Queue
	worker   *worker.Worker // cannot send SMS
	operator simOperator
	prober   prober
	preview  outbox.Previewer
	sender   outbox.Sender
	events   outbox.Caller // sends events to accounts' callback URLs
	mails    outbox.Mailer
}

func (g *Gateway) openOutbound(stores backends) (senders outbound, err error) {
	client, err := httpout.New(httpout.Options{Allow: g.cfg.Egress.Allow})
	if err != nil {
		return senders, err
	}
	if senders.operator, err = g.openOperator(); err != nil {
		return senders, err
	}
	// A message is sent to a SIM only while the relay that routed it names the SIM.
	relayServesSIM := func(ctx context.Context, delivery outbox.Delivery) (bool, error) {
		r, err := stores.records.Inbound.Get(ctx, delivery.Account, inbound.Geographic, delivery.Relay)
		if relay.KindOf(err) == relay.KindNotFound {
			return false, nil
		}
		return r.Action.Name == inbound.MVNO && r.ICCID == delivery.SIM.ICCID, err
	}
	secrets := func(ctx context.Context, acct relay.AccountID) ([]string, error) {
		a, err := stores.records.Accounts.Account(ctx, acct)
		return a.WebhookSecrets, err
	}
	senders.worker, err = worker.New(worker.Deps{
		HTTP: client, Mail: stores.mail, Operator: operator.New(senders.operator, relayServesSIM), Secrets: secrets, Now: time.Now,
	})
	if err != nil {
		return senders, err
	}
	senders.prober = prober{senders.worker, secrets}
	senders.preview = previewer(senders.worker, client, guard.New(g.cfg.Egress.Allow))
	senders.queue, err = queue.New(queue.Deps{
		Store: stores.records.Deliveries, Breakers: stores.cache.Breakers(), Redis: stores.cache,
		Schedule: delivery.Schedule(g.cfg.Delivery.Schedule), Gate: g.gate, Logger: g.log, Observe: g.observeDelivery, Tracer: g.tracer,
	}, queue.Options{})
	if err != nil {
		return senders, err
	}
	callbackURL := func(ctx context.Context, acct relay.AccountID) (string, error) {
		a, err := stores.records.Accounts.Account(ctx, acct)
		return a.CallbackURL, err // empty if the account has none
	}
	senders.sender = outbox.Sender{Store: stores.records.Deliveries, Dispatcher: senders.queue, Lease: senders.queue.Lease(), Now: time.Now}
	senders.events = outbox.Caller{Sender: senders.sender, CallbackURL: callbackURL}
	senders.mails = outbox.Mailer{Sender: senders.sender, Domain: mailDomain(g.cfg.SMTP.From)}
	return senders, nil
}

// observeDelivery counts an attempt by the host of its request, or by the kind of a delivery
// without a request. It measures the time to a successful delivery.
func (g *Gateway) observeDelivery(delivery outbox.Delivery, o outbox.Outcome) {
	host := string(delivery.Kind)
	if delivery.Request != nil {
		if u, err := url.Parse(delivery.Request.URL); err == nil {
			host = u.Host
		}
	}
	g.timings.Attempt(host, string(o.State))
	if o.State == outbox.Delivered || o.State == outbox.Simulated {
		g.timings.Delivered(string(delivery.Kind), time.Since(delivery.CreatedAt))
	}
}
