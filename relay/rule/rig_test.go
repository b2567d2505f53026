package rule_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/delivery/embedded/embeddedtest"
	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// base is the time at which the tests start.
func base() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }

// clock is the clock of a test.
type clock struct{ *relaytest.Clock }

// set sets the clock to a number of seconds after base.
func (c clock) set(seconds float64) {
	c.Advance(base().Add(time.Duration(seconds * float64(time.Second))).Sub(c.Now()))
}

// fakeDispatcher records the dispatched deliveries.
type fakeDispatcher struct {
	mu         sync.Mutex
	deliveries []outbox.Delivery
}

func (d *fakeDispatcher) Dispatch(deliveries []outbox.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deliveries = append(d.deliveries, deliveries...)
}

// site has the stores shared by gateways.
type site struct {
	t          *testing.T
	clock      clock
	records    *recordstest.Records
	cache      iot.Cache
	readings   iot.ReadingStore
	dispatcher *fakeDispatcher
}

// gateway has a device service and a rule service.
type gateway struct {
	*site
	iot   *iot.Service
	rules *rule.Service
	store *faultyStore
}

func newSite(t *testing.T, open func(now func() time.Time) *recordstest.Records) *site {
	t.Helper()
	store := relaytest.Must(readings.Open(t.TempDir(), ""))(t)
	t.Cleanup(func() { _ = store.Close() })
	s := &site{t: t, clock: clock{relaytest.NewClock(base())}, cache: embeddedtest.Cache(t).IoT(), readings: store, dispatcher: &fakeDispatcher{}}
	s.records = open(s.clock.Now)
	relaytest.NoError(t, s.records.Devices.PutSensorType(t.Context(), iot.SensorType{ID: "temperature", MetricUnits: "°C"}))
	d := iot.Decoder{ID: "dec", Name: "dec", Type: iot.Other, Codec: "json"}
	for _, key := range []string{"t", "h", "door"} {
		d.Sensors = append(d.Sensors, iot.Mapping{Key: key, SensorTypeID: "temperature"})
	}
	relaytest.NoError(t, s.records.Devices.CreateDecoder(t.Context(), 1, d), s.records.Devices.CreateDecoder(t.Context(), 2, d))
	return s
}

func (s *site) sender() outbox.Sender {
	return outbox.Sender{Dispatcher: s.dispatcher, Lease: 30 * time.Second, Now: s.clock.Now}
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	return newSite(t, func(now func() time.Time) *recordstest.Records { return recordstest.OpenAt(t, now) }).gateway()
}

// gateway returns another gateway of the site, with in-process caches of its own, which are empty.
func (s *site) gateway() *gateway {
	s.t.Helper()
	g := &gateway{site: s, store: &faultyStore{Store: s.records.Rules}}
	g.iot = iot.New(s.records.Devices, s.cache, s.readings, catalogtest.Compile, iot.Options{
		Now: s.clock.Now,
		Evaluate: func(ctx context.Context, acct relay.AccountID, v iot.Version, frames []iot.StoredFrame) error {
			return g.rules.Evaluate(ctx, acct, v, frames)
		},
	})
	var err error
	g.rules, err = rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: s.sender()}, rule.Options{Now: s.clock.Now})
	relaytest.NoError(s.t, err)
	return g
}

// create creates a rule of account 1, with an http_post if it has no actions.
func (g *gateway) create(r rule.Rule) string {
	g.t.Helper()
	r.Name, r.Enabled = "Rule", true
	if r.On == "" {
		r.On = rule.OnReading
	}
	if r.Actions == nil {
		r.Actions = []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/"}}}
	}
	created, _, err := g.rules.Create(g.t.Context(), 1, r)
	relaytest.NoError(g.t, err)
	return created.ID
}

// uplink returns an uplink of a device, whose times are sentAt seconds after base.
func uplink(device string, sentAt float64, values map[string]any) iot.Arrival {
	t := base().Add(time.Duration(sentAt * float64(time.Second)))
	return iot.Arrival{
		RecordID: fmt.Sprintf("n-u%s%g", device, sentAt), Account: 1, DecoderID: "dec", ReceivedAt: t,
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: device, DedupID: fmt.Sprint(sentAt), NetworkTime: t, Object: values},
	}
}

// temperature returns an uplink with a temperature as key t.
func temperature(device string, sentAt, celsius float64) iot.Arrival {
	return uplink(device, sentAt, map[string]any{"t": celsius})
}

func (g *gateway) ingest(arrivals ...iot.Arrival) {
	g.t.Helper()
	outcomes, err := g.iot.Ingest(g.t.Context(), arrivals)
	relaytest.NoError(g.t, err)
	for i := range outcomes {
		if outcomes[i].Refused != "" {
			g.t.Fatalf("%s: refused for %q", arrivals[i].RecordID, outcomes[i].Refused)
		}
	}
}

// device returns the id of a device.
func (s *site) device(identifier string) string {
	s.t.Helper()
	d, err := s.records.Devices.DeviceByIdentifier(s.t.Context(), 1, identifier)
	relaytest.NoError(s.t, err)
	return d.ID
}

// alarms returns an account's alarms as "raised–cleared", in seconds after base, sorted by these times.
func (s *site) alarms() (list []string) {
	s.t.Helper()
	rows, _, err := s.records.Rules.Alarms(s.t.Context(), 1, rule.AlarmFilter{Limit: 500})
	relaytest.NoError(s.t, err)
	slices.SortFunc(rows, func(a, b rule.AccountRecord[rule.Alarm]) int {
		return cmp.Or(a.Record.RaisedAt.Compare(b.Record.RaisedAt), a.Record.ClearedAt.Compare(b.Record.ClearedAt))
	})
	for _, row := range rows {
		a := row.Record
		text := fmt.Sprintf("%g–", a.RaisedAt.Sub(base()).Seconds())
		if a.State == rule.Cleared {
			text += fmt.Sprintf("%g", a.ClearedAt.Sub(base()).Seconds())
		}
		list = append(list, text)
	}
	return list
}

// deliveries returns the deliveries of kind rule, oldest first.
func (s *site) deliveries() []outbox.Delivery {
	s.t.Helper()
	deliveries, _, err := s.records.Deliveries.List(s.t.Context(), outbox.Filter{Kind: outbox.KindRule, Limit: 500})
	relaytest.NoError(s.t, err)
	slices.Reverse(deliveries)
	return deliveries
}

func (g *gateway) wantAlarmsAndDeliveries(label string, alarms []string, deliveries int) {
	g.t.Helper()
	relaytest.Equal(g.t, label+": the alarms", g.alarms(), alarms)
	relaytest.Equal(g.t, label+": the number of deliveries", len(g.deliveries()), deliveries)
}

// faultyStore is a store with one change that fails before or after its commit, as in a crash of the
// process.
type faultyStore struct {
	*rule.Store
	mu              sync.Mutex
	calls           int
	failAt          int // number of the change that fails, from 1; 0 for none
	failAfterCommit bool
}

var errCrash = errors.New("process crashed")

// change runs a change of the store, or fails.
func (f *faultyStore) change(do func() error) error {
	f.mu.Lock()
	f.calls++
	failing := f.calls == f.failAt
	f.mu.Unlock()
	if failing && !f.failAfterCommit {
		return errCrash
	}
	if err := do(); err != nil {
		return err
	}
	if failing {
		return errCrash
	}
	return nil
}

func (f *faultyStore) SaveDecision(ctx context.Context, acct relay.AccountID, pairs []rule.Pair, until time.Time, decide func([]rule.PairState) (rule.Decision, error)) (deliveries []outbox.Delivery, err error) {
	err = f.change(func() (err error) {
		deliveries, err = f.Store.SaveDecision(ctx, acct, pairs, until, decide)
		return err
	})
	return deliveries, err
}

func (f *faultyStore) Collect(ctx context.Context, acct relay.AccountID, items []rule.Item) (full []rule.BatchRef, err error) {
	err = f.change(func() (err error) {
		full, err = f.Store.Collect(ctx, acct, items)
		return err
	})
	return full, err
}

func (f *faultyStore) TakeBatch(ctx context.Context, ref rule.BatchRef, batch rule.Batch, now, until time.Time, send func([]rule.Occurrence) ([]outbox.Delivery, error)) (deliveries []outbox.Delivery, hasMore bool, err error) {
	err = f.change(func() (err error) {
		deliveries, hasMore, err = f.Store.TakeBatch(ctx, ref, batch, now, until, send)
		return err
	})
	return deliveries, hasMore, err
}
