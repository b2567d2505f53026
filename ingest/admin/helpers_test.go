package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/replay"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/user"
)

// picky sets aside what it is told to, and counts what it processed.
type picky struct {
	mu      sync.Mutex
	state   map[string]event.State // by a part of the body
	outcome string                 // of all entries; empty for none
	seen    int
}

func (p *picky) Parse(*intake.Item) (struct{}, []uint64, error) { return struct{}{}, nil, nil }

// Describe describes messages: bodies that begin with their numbers.
func (p *picky) Describe(it intake.Parsed[struct{}]) string {
	if text := string(it.Entry.Body); strings.HasPrefix(text, "from ") {
		return text
	}
	return ""
}

func (p *picky) Process(_ context.Context, items []intake.Parsed[struct{}]) ([]event.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var statuses []event.Status
	for _, it := range items {
		p.seen++
		if p.outcome != "" {
			statuses = append(statuses, event.Status{ID: it.ID, Seq: it.Seq, State: event.Done, Outcome: p.outcome})
		}
		for part, state := range p.state {
			if strings.Contains(string(it.Entry.Body), part) {
				statuses = append(statuses, event.Status{ID: it.ID, Seq: it.Seq, State: state, Reason: "because of " + part})
			}
		}
	}
	return statuses, nil
}

func (p *picky) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = nil
}

// office is the administrator's surface over real records and journals.
type office struct {
	t       *testing.T
	app     *fiber.App
	surface *Surface
	db      *recordstest.Records
	cache   *cache.DB
	intakes map[event.Kind]*intake.Intake
	p       *picky
	now     time.Time // of the journals
	backend error
	users   *user.Service
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{
		t: t, intakes: map[event.Kind]*intake.Intake{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		p: &picky{state: map[string]event.State{"bad": event.Quarantined, "nobody": event.Unrouted}},
	}
	o.db, o.cache = recordstest.Open(t), cachetest.Open(t)
	quiet := slog.New(slog.DiscardHandler)
	intakes := []*intake.Intake{o.open(event.Uplink), o.open(event.SMS)}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		NewJournalCollector(intakes), NewDeliveryCollector(func() Deliveries { return Deliveries{Running: 3, Dead: 4} }),
		NewStoredCollector(func() map[string]int64 { return map[string]int64{"messages": 8192} }),
	)
	o.app = httpd.New(httpd.Options{Logger: quiet})
	devices := iot.New(o.db.Devices, cachetest.Open(t).IoT(), nil, catalogtest.Compile, iot.Options{Logger: quiet})
	rules, err := rule.New(rule.Deps{Store: o.db.Rules, Fleet: devices, Deliveries: outbox.Sender{Dispatcher: nowhere{}, Now: func() time.Time { return o.now }}}, rule.Options{Now: func() time.Time { return o.now }, Logger: quiet})
	relaytest.NoError(t, err)
	relays, err := inbound.NewRelayService(inbound.RelayServiceDeps{Store: o.db.Inbound, Accounts: o.db.Accounts, Now: func() time.Time { return o.now }, CheckURL: checkURL})
	relaytest.NoError(t, err)
	o.users = user.New(o.db.Users, user.Options{})
	o.surface = New(Deps{
		Users: o.users, Audit: o.db.Audit, PublicURL: "http://gw.example.com", Logger: quiet,
		Rules: rules, Relays: relays, IoT: devices,
		Node: "n1", Accounts: o.db.Accounts, Inventory: newInventory(o.db, rules), Intakes: intakes, Deliveries: o.db.Deliveries, Breakers: o.cache.Breakers(), Credit: o.db.Credit, Messages: o.db.Messages,
		SIMs: o.db.SIMs, Pools: o.db.Pools, Usage: o.db.Usage, Jobs: o.db.Jobs, Effects: replay.NewStore(o.db.DB), Types: o.db.Devices,
		Backends: []Backend{{Name: "records", Note: "redis", Check: o.db.DB.Check}, {Name: "readings", Check: func(context.Context) error { return o.backend }}},
		Metrics:  metrics, Now: func() time.Time { return o.now },
		Inspector: counter{o}, ReadPost: readPost, Waits: func(string) string { return "" },
		Program: Program{
			Queue: func() Deliveries { return Deliveries{} }, Stored: func() map[string]int64 { return nil },
			Binds: func() []Bind { return nil }, Sending: func() []Sending { return nil },
		},
	})
	o.surface.Mount(o.app, httpd.NewAuth(httpd.AuthDeps{
		Tokens: o.db.Accounts, AdminToken: "root", Now: func() time.Time { return o.now }, Sessions: o.users, Accounts: o.db.Accounts,
		Audit: o.db.Audit, PublicURL: "http://gw.example.com", Logger: quiet,
	}))
	o.app.Use(httpd.NotFound)
	return o
}

// readPost reads the numbers of a body like "from 447700900123 to 4490".
func readPost(it *intake.Item) ([]inbound.Message, string, error) {
	numbers, ok := strings.CutPrefix(string(it.Entry.Body), "from ")
	i := strings.LastIndex(numbers, " to ")
	if !ok || i < 0 {
		return nil, "", errors.New("the body is not a message")
	}
	return []inbound.Message{{From: numbers[:i], To: numbers[i+len(" to "):]}}, "", nil
}

// counter is an Inspector that counts the selected posts and previews none.
type counter struct{ o *office }

func (c counter) Preview(ctx context.Context, f event.Filter, until time.Time, _ int, _ func() bool, _ func(*event.Event, *replay.PreviewedPost)) (int, time.Time, error) {
	n, reached, err := c.o.intakes[event.Uplink].Count(ctx, f, until)
	return n, reached.Time, err
}

func (counter) Recent(context.Context, relay.AccountID, iot.Device, int) ([]iot.Arrival, error) {
	return nil, nil
}

// nowhere takes deliveries; rules without frames have none.
type nowhere struct{}

func (nowhere) Dispatch([]outbox.Delivery) {}

// newInventory applies documents to the records.
func newInventory(db *recordstest.Records, rules *rule.Service) *inventory.Service {
	return inventory.New(inventory.Deps{
		Rules: rules, Store: inventory.NewStore(db.DB), Accounts: db.Accounts, Devices: db.Devices, Relays: db.Inbound, Ledgers: db.Ledgers, Networks: db.Lookups, Credit: db.Credit, Trunks: db.Trunks, SIMs: db.SIMs, Audit: db.Audit,
		CheckURL:    checkURL,
		CheckSource: func(string, string) error { return nil },
		Now:         func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
	})
}

// checkURL refuses one address.
func checkURL(url string) error {
	if strings.Contains(url, "10.0.0.1") {
		return errors.New("a private address")
	}
	return nil
}

func (o *office) open(kind event.Kind) *intake.Intake {
	o.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	log, err := journal.Open(o.t.TempDir(), journal.Options{Logger: quiet, CommitWindow: -1, Now: func() time.Time { return o.now }})
	relaytest.NoError(o.t, err)
	in, err := intake.New(kind, "n1", log, o.db.Statuses("n1"), o.p, intake.Options{Logger: quiet, Linger: -1})
	relaytest.NoError(o.t, err)
	o.t.Cleanup(func() { _ = log.Close() })
	o.intakes[kind] = in
	return in
}

// accept writes an entry a second after the one before.
func (o *office) accept(kind event.Kind, body string) {
	o.t.Helper()
	o.now = o.now.Add(time.Second)
	_, err := o.intakes[kind].Accept(o.t.Context(), &intake.Entry{Account: 7, Source: "generic", Path: "/x", Body: []byte(body)})
	relaytest.NoError(o.t, err)
}

// process brings everything accepted to its end.
func (o *office) process() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, in := range o.intakes {
		wg.Go(func() { _ = in.Run(ctx) })
	}
	for _, in := range o.intakes {
		redistest.Await(o.t, "all is processed", func(context.Context) bool { return in.Status().Lag == 0 })
	}
	cancel()
	wg.Wait()
}

// ask makes a request as "METHOD path" and returns "status body".
func (o *office) ask(line, body string) string {
	o.t.Helper()
	method, target, _ := strings.Cut(line, " ")
	status, got, _ := answertest.Ask(o.t, o.app, answertest.Request(method, target, body, "Authorization", "Bearer root"))
	return strings.TrimSpace(fmt.Sprint(status, " ", got))
}

// list is a page of a list.
type list struct {
	Data []map[string]any
	Meta struct{ Next string }
}

func (o *office) list(line string) (l list) {
	o.t.Helper()
	got := o.ask(line, "")
	body, ok := strings.CutPrefix(got, "200 ")
	if !ok {
		o.t.Fatal(got)
	}
	relaytest.NoError(o.t, json.Unmarshal([]byte(body), &l))
	return l
}

func (l list) ids() (out []string) {
	for _, d := range l.Data {
		out = append(out, strings.TrimPrefix(fmt.Sprint(d["id"]), "n1-"))
	}
	return out
}
