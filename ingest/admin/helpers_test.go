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

// testProcessor is a processor that returns the states and the outcome that a test sets.
type testProcessor struct {
	mu      sync.Mutex
	states  map[string]event.State // by a part of the body
	outcome string                 // of all entries; empty for none
}

func (t *testProcessor) Parse(*intake.Item) (struct{}, []uint64, error) { return struct{}{}, nil, nil }

// Describe returns the body of a message, which begins with "from ".
func (t *testProcessor) Describe(item intake.ParsedItem[struct{}]) string {
	if text := string(item.Entry.Body); strings.HasPrefix(text, "from ") {
		return text
	}
	return ""
}

func (t *testProcessor) Process(_ context.Context, items []intake.ParsedItem[struct{}]) ([]event.Status, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var statuses []event.Status
	for _, item := range items {
		if t.outcome != "" {
			statuses = append(statuses, event.Status{ID: item.ID, Seq: item.Seq, State: event.Done, Outcome: t.outcome})
		}
		for part, state := range t.states {
			if strings.Contains(string(item.Entry.Body), part) {
				statuses = append(statuses, event.Status{ID: item.ID, Seq: item.Seq, State: state, Reason: "because of " + part})
			}
		}
	}
	return statuses, nil
}

// acceptAll makes all entries succeed.
func (t *testProcessor) acceptAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states = nil
}

// operatorAPI is the admin API with a database and journals of a test.
type operatorAPI struct {
	t       *testing.T
	app     *fiber.App
	surface *Surface
	db      *recordstest.Records
	cache   *cache.DB
	intakes map[event.Kind]*intake.Intake
	p       *testProcessor
	now     time.Time // of the journals
	backend error     // returned by the check of the back end readings
	users   *user.Service
}

func newOperatorAPI(t *testing.T) *operatorAPI {
	t.Helper()
	o := &operatorAPI{
		t: t, intakes: map[event.Kind]*intake.Intake{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		p: &testProcessor{states: map[string]event.State{"bad": event.Quarantined, "nobody": event.Unrouted}},
	}
	o.db, o.cache = recordstest.Open(t), cachetest.Open(t)
	discardLogger := slog.New(slog.DiscardHandler)
	intakes := []*intake.Intake{o.openIntake(event.Uplink), o.openIntake(event.SMS)}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		NewJournalCollector(intakes), NewDeliveryCollector(func() Deliveries { return Deliveries{Running: 3, Dead: 4} }),
		NewStoredCollector(func() map[string]int64 { return map[string]int64{"messages": 8192} }),
	)
	o.app = httpd.New(httpd.Options{Logger: discardLogger})
	devices := iot.New(o.db.Devices, cachetest.Open(t).IoT(), nil, catalogtest.Compile, iot.Options{Logger: discardLogger})
	rules, err := rule.New(rule.Deps{Store: o.db.Rules, Fleet: devices, Deliveries: outbox.Sender{Dispatcher: discardDispatcher{}, Now: func() time.Time { return o.now }}}, rule.Options{Now: func() time.Time { return o.now }, Logger: discardLogger})
	relaytest.NoError(t, err)
	relays, err := inbound.NewRelayService(inbound.RelayServiceDeps{Store: o.db.Inbound, Accounts: o.db.Accounts, Now: func() time.Time { return o.now }, CheckURL: checkURL})
	relaytest.NoError(t, err)
	o.users = user.New(o.db.Users, user.Options{})
	o.surface = New(Deps{
		Users: o.users, Audit: o.db.Audit, PublicURL: "http://gw.example.com", Logger: discardLogger,
		Rules: rules, Relays: relays, IoT: devices,
		Node: "n1", Accounts: o.db.Accounts, Inventory: newInventory(o.db, rules), Intakes: intakes, Deliveries: o.db.Deliveries, Breakers: o.cache.Breakers(), Credit: o.db.Credit, Messages: o.db.Messages,
		SIMs: o.db.SIMs, Pools: o.db.Pools, Usage: o.db.Usage, Jobs: o.db.Jobs, Effects: replay.NewStore(o.db.DB), Types: o.db.Devices,
		Backends: []Backend{{Name: "records", Note: "redis", Check: o.db.DB.Check}, {Name: "readings", Check: func(context.Context) error { return o.backend }}},
		Metrics:  metrics, Now: func() time.Time { return o.now },
		Inspector: countingInspector{o}, ReadPost: readPost, WaitReason: func(string) string { return "" },
		Program: Program{
			Queue: func() Deliveries { return Deliveries{} }, Stored: func() map[string]int64 { return nil },
			Binds: func() []Bind { return nil }, Sending: func() []Sending { return nil },
		},
	})
	o.surface.Mount(o.app, httpd.NewAuth(httpd.AuthDeps{
		Tokens: o.db.Accounts, AdminToken: "root", Now: func() time.Time { return o.now }, Sessions: o.users, Accounts: o.db.Accounts,
		Audit: o.db.Audit, PublicURL: "http://gw.example.com", Logger: discardLogger,
	}))
	o.app.Use(httpd.NotFound)
	return o
}

// readPost parses a body like "from 447700900123 to 4490".
func readPost(item *intake.Item) ([]inbound.Message, string, error) {
	numbers, ok := strings.CutPrefix(string(item.Entry.Body), "from ")
	split := strings.LastIndex(numbers, " to ")
	if !ok || split < 0 {
		return nil, "", errors.New("the body is not a message")
	}
	return []inbound.Message{{From: numbers[:split], To: numbers[split+len(" to "):]}}, "", nil
}

// countingInspector is an Inspector that counts the selected posts and previews none.
type countingInspector struct{ api *operatorAPI }

func (c countingInspector) Preview(ctx context.Context, f event.Filter, until time.Time, _ int, _ func() bool, _ func(*event.Event, *replay.PreviewedPost)) (int, time.Time, error) {
	n, end, err := c.api.intakes[event.Uplink].Count(ctx, f, until)
	return n, end.Time, err
}

func (countingInspector) Recent(context.Context, relay.AccountID, iot.Device, int) ([]iot.Arrival, error) {
	return nil, nil
}

// discardDispatcher is a dispatcher that discards deliveries.
type discardDispatcher struct{}

func (discardDispatcher) Dispatch([]outbox.Delivery) {}

// newInventory returns an inventory service on the records.
func newInventory(db *recordstest.Records, rules *rule.Service) *inventory.Service {
	return inventory.New(inventory.Deps{
		Rules: rules, Store: inventory.NewStore(db.DB), Accounts: db.Accounts, Devices: db.Devices, Relays: db.Inbound, Ledgers: db.Ledgers, Networks: db.Lookups, Credit: db.Credit, Trunks: db.Trunks, SIMs: db.SIMs, Audit: db.Audit,
		CheckURL:    checkURL,
		CheckSource: func(string, string) error { return nil },
		Now:         func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
	})
}

// checkURL refuses the address 10.0.0.1.
func checkURL(url string) error {
	if strings.Contains(url, "10.0.0.1") {
		return errors.New("a private address")
	}
	return nil
}

// openIntake opens a journal of a kind and its intake.
func (o *operatorAPI) openIntake(kind event.Kind) *intake.Intake {
	o.t.Helper()
	discardLogger := slog.New(slog.DiscardHandler)
	log, err := journal.Open(o.t.TempDir(), journal.Options{Logger: discardLogger, CommitWindow: -1, Now: func() time.Time { return o.now }})
	relaytest.NoError(o.t, err)
	i, err := intake.New(kind, "n1", log, o.db.Statuses("n1"), o.p, intake.Options{Logger: discardLogger, Linger: -1})
	relaytest.NoError(o.t, err)
	o.t.Cleanup(func() { _ = log.Close() })
	o.intakes[kind] = i
	return i
}

// accept advances the clock by a second and writes an entry to the journal.
func (o *operatorAPI) accept(kind event.Kind, body string) {
	o.t.Helper()
	o.now = o.now.Add(time.Second)
	_, err := o.intakes[kind].Accept(o.t.Context(), &intake.Entry{Account: 7, Source: "generic", Path: "/x", Body: []byte(body)})
	relaytest.NoError(o.t, err)
}

// process processes all accepted entries.
func (o *operatorAPI) process() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, i := range o.intakes {
		wg.Go(func() { _ = i.Run(ctx) })
	}
	for _, i := range o.intakes {
		redistest.Await(o.t, "all entries are processed", func(context.Context) bool { return i.Status().Lag == 0 })
	}
	cancel()
	wg.Wait()
}

// call sends a request "METHOD path" with the admin token and returns "status body".
func (o *operatorAPI) call(line, body string) string {
	o.t.Helper()
	method, target, _ := strings.Cut(line, " ")
	status, got, _ := answertest.Send(o.t, o.app, answertest.Request(method, target, body, "Authorization", "Bearer root"))
	return strings.TrimSpace(fmt.Sprint(status, " ", got))
}

// list is a page of a list.
type list struct {
	Data []map[string]any
	Meta struct{ Next string }
}

// list returns the page that a request answers with.
func (o *operatorAPI) list(line string) (l list) {
	o.t.Helper()
	got := o.call(line, "")
	body, ok := strings.CutPrefix(got, "200 ")
	if !ok {
		o.t.Fatal(got)
	}
	relaytest.NoError(o.t, json.Unmarshal([]byte(body), &l))
	return l
}

// ids returns the ids of the records, without the name of the node.
func (l list) ids() (ids []string) {
	for _, d := range l.Data {
		ids = append(ids, strings.TrimPrefix(fmt.Sprint(d["id"]), "n1-"))
	}
	return ids
}
