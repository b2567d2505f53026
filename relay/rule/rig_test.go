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

// base is the start time of the tests.
func base() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }

// clock is the time of a test.
type clock struct{ *relaytest.Clock }

// set sets the clock to a number of seconds after base.
func (c clock) set(seconds float64) {
	c.Advance(base().Add(time.Duration(seconds * float64(time.Second))).Sub(c.Now()))
}

// dispatched records the dispatched deliveries.
type dispatched struct {
	mu  sync.Mutex
	all []outbox.Delivery
}

func (d *dispatched) Dispatch(ds []outbox.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, ds...)
}

// site has the stores that gateways share.
type site struct {
	t        *testing.T
	clock    clock
	records  *recordstest.Records
	cache    iot.Cache
	readings iot.ReadingStore
	sent     *dispatched
}

// gateway has a service of rules and a service of devices.
type gateway struct {
	*site
	iot   *iot.Service
	rules *rule.Service
	store *faulty
}

func newSite(t *testing.T, open func(now func() time.Time) *recordstest.Records) *site {
	t.Helper()
	store := relaytest.Must(readings.Open(t.TempDir(), ""))(t)
	t.Cleanup(func() { _ = store.Close() })
	s := &site{t: t, clock: clock{relaytest.NewClock(base())}, cache: embeddedtest.Cache(t).IoT(), readings: store, sent: &dispatched{}}
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
	return outbox.Sender{Dispatcher: s.sent, Lease: 30 * time.Second, Now: s.clock.Now}
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	return newSite(t, func(now func() time.Time) *recordstest.Records { return recordstest.OpenAt(t, now) }).gateway()
}

// gateway starts a gateway with empty caches.
func (s *site) gateway() *gateway {
	s.t.Helper()
	g := &gateway{site: s, store: &faulty{Store: s.records.Rules}}
	g.iot = iot.New(s.records.Devices, s.cache, s.readings, catalogtest.Compile, iot.Options{
		Now: s.clock.Now,
		Evaluate: func(ctx context.Context, acct relay.AccountID, v iot.Version, frames []iot.Stored) error {
			return g.rules.Evaluate(ctx, acct, v, frames)
		},
	})
	var err error
	g.rules, err = rule.New(rule.Deps{Store: g.store.Store, Transactions: g.store, Fleet: g.iot, Deliveries: s.sender()}, rule.Options{Now: s.clock.Now})
	relaytest.NoError(s.t, err)
	return g
}

// create saves a rule of account 1 with an http_post.
func (g *gateway) create(r rule.Rule) string {
	g.t.Helper()
	r.Name, r.Enabled = "Rule", true
	if r.On == "" {
		r.On = rule.OnReading
	}
	if r.Actions == nil {
		r.Actions = []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/"}}}
	}
	made, _, err := g.rules.Create(g.t.Context(), 1, r)
	relaytest.NoError(g.t, err)
	return made.ID
}

// uplink returns an uplink of a device, whose times are a number of seconds after base.
func uplink(device string, at float64, values map[string]any) iot.Arrival {
	when := base().Add(time.Duration(at * float64(time.Second)))
	return iot.Arrival{
		Record: fmt.Sprintf("n-u%s%g", device, at), Account: 1, DecoderID: "dec", ReceivedAt: when,
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: device, DedupID: fmt.Sprint(at), NetworkTime: when, Object: values},
	}
}

func warm(device string, at, celsius float64) iot.Arrival {
	return uplink(device, at, map[string]any{"t": celsius})
}

func (g *gateway) ingest(all ...iot.Arrival) {
	g.t.Helper()
	out, err := g.iot.Ingest(g.t.Context(), all)
	relaytest.NoError(g.t, err)
	for i := range out {
		if out[i].Refused != "" {
			g.t.Fatalf("%s: %s", all[i].Record, out[i].Refused)
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

// alarms returns an account's alarms as "raised at–cleared at" in seconds, sorted by these times.
func (s *site) alarms() (out []string) {
	s.t.Helper()
	all, _, err := s.records.Rules.Alarms(s.t.Context(), 1, rule.AlarmFilter{Limit: 500})
	relaytest.NoError(s.t, err)
	slices.SortFunc(all, func(a, b rule.Owned[rule.Alarm]) int {
		return cmp.Or(a.Of.RaisedAt.Compare(b.Of.RaisedAt), a.Of.ClearedAt.Compare(b.Of.ClearedAt))
	})
	for _, one := range all {
		a := one.Of
		text := fmt.Sprintf("%g–", a.RaisedAt.Sub(base()).Seconds())
		if a.State == rule.Cleared {
			text += fmt.Sprintf("%g", a.ClearedAt.Sub(base()).Seconds())
		}
		out = append(out, text)
	}
	return out
}

// deliveries returns the deliveries of kind rule, oldest first.
func (s *site) deliveries() []outbox.Delivery {
	s.t.Helper()
	all, _, err := s.records.Deliveries.List(s.t.Context(), outbox.Filter{Kind: outbox.KindRule, Limit: 500})
	relaytest.NoError(s.t, err)
	slices.Reverse(all)
	return all
}

func (g *gateway) wants(what string, alarms []string, deliveries int) {
	g.t.Helper()
	relaytest.Equal(g.t, what+": the alarms", g.alarms(), alarms)
	relaytest.Equal(g.t, what+": the number of deliveries", len(g.deliveries()), deliveries)
}

// faulty is a store whose changes fail before or after they were committed, as in a crash of the
// process.
type faulty struct {
	*rule.Store
	mu     sync.Mutex
	calls  int
	failAt int // which change fails, from 1; 0: none
	after  bool
}

var errDied = errors.New("the process has died")

// change calls a change of the store, which may fail.
func (f *faulty) change(do func() error) error {
	f.mu.Lock()
	f.calls++
	fails := f.calls == f.failAt
	f.mu.Unlock()
	if fails && !f.after {
		return errDied
	}
	if err := do(); err != nil {
		return err
	}
	if fails {
		return errDied
	}
	return nil
}

func (f *faulty) Decide(ctx context.Context, acct relay.AccountID, pairs []rule.Pair, until time.Time, decide func([]rule.PairState) (rule.Decision, error)) (out []outbox.Delivery, err error) {
	err = f.change(func() (err error) {
		out, err = f.Store.Decide(ctx, acct, pairs, until, decide)
		return err
	})
	return out, err
}

func (f *faulty) Collect(ctx context.Context, acct relay.AccountID, items []rule.Item) (full []rule.BatchRef, err error) {
	err = f.change(func() (err error) {
		full, err = f.Store.Collect(ctx, acct, items)
		return err
	})
	return full, err
}

func (f *faulty) TakeBatch(ctx context.Context, ref rule.BatchRef, b rule.Batch, now, until time.Time, send func([]rule.Occurrence) ([]outbox.Delivery, error)) (out []outbox.Delivery, more bool, err error) {
	err = f.change(func() (err error) {
		out, more, err = f.Store.TakeBatch(ctx, ref, b, now, until, send)
		return err
	})
	return out, more, err
}
