package iot_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/delivery/embedded/embeddedtest"
	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

const eui = "24e124136b502217"

// gateway is a service with real stores: SQLite for records and for readings. The cache and the
// reading store can be made to fail.
type gateway struct {
	*iot.Service
	t        *testing.T
	db       *db.DB
	records  *iot.Store
	cache    *faultyCache
	readings *faultyReadings
	now      time.Time
	options  iot.Options
	compile  iot.Compiler

	// reads and writes count the read statements and the transactions of the record store.
	reads, writes atomic.Int32
	// onRead runs after each read statement; nil disables it.
	onRead func()
}

// observe counts the operations of the record store.
func (g *gateway) observe(operation string, _ time.Duration) {
	if operation == "write" {
		g.writes.Add(1)
		return
	}
	g.reads.Add(1)
	if g.onRead != nil {
		g.onRead()
	}
}

// afterReads runs do once, after the n-th read statement of the record store from now on.
func (g *gateway) afterReads(n int, do func()) {
	g.t.Cleanup(func() {
		if n > 0 {
			g.t.Errorf("%d expected reads of records are missing", n)
		}
	})
	g.onRead = func() {
		if n--; n == 0 {
			g.onRead = nil
			do()
		}
	}
}

// faultyReadings is a reading store that can be down and refuse keys.
type faultyReadings struct {
	iot.ReadingStore
	mu      sync.Mutex
	down    error
	refuse  map[string]string // key, or "uplink" for radio data → reason
	written int
	reads   int // number of calls of Latest and LastStored
	// meanwhile runs after Latest has read the points; nil disables it.
	meanwhile func()
	radio     []iot.RadioData // in the order of the writes
}

func (s *faultyReadings) Write(ctx context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	var refused []iot.RefusedItem
	accepted := iot.Readings{Radio: b.Radio}
	for i, p := range b.Points {
		if reason, ok := s.refuse[p.Key]; ok {
			refused = append(refused, iot.RefusedItem{Point: i, Radio: -1, Reason: reason})
			continue
		}
		accepted.Points = append(accepted.Points, p)
	}
	if reason, ok := s.refuse["uplink"]; ok && len(b.Radio) > 0 {
		refused = append(refused, iot.RefusedItem{Point: -1, Radio: 0, Reason: reason})
	}
	s.written += len(accepted.Points)
	s.radio = append(s.radio, accepted.Radio...)
	_, err := s.ReadingStore.Write(ctx, accepted)
	return refused, err
}

func (s *faultyReadings) Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]iot.Point, error) {
	s.reads++
	if s.down != nil {
		return nil, s.down
	}
	points, err := s.ReadingStore.Latest(ctx, acct, deviceID, types)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return points, err
}

func (s *faultyReadings) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	s.reads++
	if s.down != nil {
		return nil, s.down
	}
	return s.ReadingStore.LastStored(ctx, acct, deviceIDs)
}

func (s *faultyReadings) Forget(ctx context.Context, acct relay.AccountID, sensors []iot.ExpiredPoints) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	return s.ReadingStore.Forget(ctx, acct, sensors)
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	store := relaytest.Must(readings.Open(t.TempDir(), ""))(t)
	t.Cleanup(func() { _ = store.Close() })
	g := &gateway{
		t: t, cache: &faultyCache{Cache: embeddedtest.Cache(t).IoT()}, readings: &faultyReadings{ReadingStore: store},
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), compile: catalogtest.Compile,
	}
	g.db = dbtest.Open(t, db.Options{Observe: g.observe})
	g.records = iot.NewStore(g.db, rule.OnDevice)
	g.options.Now = func() time.Time { return g.now }
	g.start()
	for _, id := range []string{"temperature", "humidity", "state"} {
		relaytest.NoError(t, g.records.PutSensorType(t.Context(), iot.SensorType{ID: id, Name: "The " + id, MetricUnits: "u"}))
	}
	for _, acct := range []relay.AccountID{1, 2} {
		relaytest.NoError(t, g.records.PutLocation(t.Context(), acct, iot.Location{ID: "elsewhere"}),
			g.records.PutLocation(t.Context(), acct, iot.Location{ID: "here", Imported: true}),
			g.records.CreateDecoder(t.Context(), acct, decoder("d1", "temperature", "humidity")))
	}
	return g
}

// start creates a service with empty caches, as after a restart.
func (g *gateway) start() { g.Service = iot.New(g.records, g.cache, g.readings, g.compile, g.options) }

// decoder returns a decoder of posted values. It maps the keys temperature and humidity to the
// sensor types of these names and other keys to state.
func decoder(id string, keys ...string) iot.Decoder {
	d := iot.Decoder{ID: id, Name: id, Type: iot.LoRaWAN, Codec: "json"}
	for _, key := range keys {
		d.Sensors = append(d.Sensors, iot.Mapping{Key: key, SensorTypeID: map[string]string{"temperature": "temperature", "humidity": "humidity"}[key]})
		if d.Sensors[len(d.Sensors)-1].SensorTypeID == "" {
			d.Sensors[len(d.Sensors)-1].SensorTypeID = "state"
		}
	}
	return d
}

// frame returns an uplink of the device eui with an object, posted by account 1 with decoder_id d1.
func (g *gateway) frame(record string, object map[string]any) iot.Arrival {
	return iot.Arrival{
		RecordID: record, Account: 1, DecoderID: "d1", ReceivedAt: g.now,
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: eui, IsDevEUI: true, Name: "probe", DedupID: record, Object: object},
	}
}

func (g *gateway) ingest(arrivals ...iot.Arrival) []iot.Outcome {
	g.t.Helper()
	outcomes, err := g.Ingest(g.t.Context(), arrivals)
	relaytest.NoError(g.t, err)
	if len(outcomes) != len(arrivals) {
		g.t.Fatalf("%d outcomes for %d frames", len(outcomes), len(arrivals))
	}
	return outcomes
}

// mustStore ingests frames and fails the test unless each frame is stored.
func (g *gateway) mustStore(arrivals ...iot.Arrival) []iot.Outcome {
	g.t.Helper()
	outcomes := g.ingest(arrivals...)
	for i, outcome := range outcomes {
		if outcome.Refused != "" || len(outcome.Lost) > 0 {
			g.t.Fatalf("frame %d: refused for %q, lost %q; want it stored", i, outcome.Refused, outcome.Lost)
		}
	}
	return outcomes
}

func (g *gateway) device(acct relay.AccountID) iot.Device {
	g.t.Helper()
	d, err := g.DeviceByIdentifier(g.t.Context(), acct, eui)
	relaytest.NoError(g.t, err)
	return d
}

// history returns a device's readings, newest first, as "key=value".
func (g *gateway) history(acct relay.AccountID) (list []string) {
	g.t.Helper()
	rows, err := g.Readings(g.t.Context(), iot.Query{Account: acct, DeviceID: g.device(acct).ID}, iot.Metric)
	relaytest.NoError(g.t, err)
	return keyValues(rows)
}

func (g *gateway) latestValues() []string {
	g.t.Helper()
	rows, err := g.Latest(g.t.Context(), 1, g.device(1).ID, iot.Metric)
	relaytest.NoError(g.t, err)
	return keyValues(rows)
}

// keyValues formats readings as "key=value".
func keyValues(rows []iot.ReadingRow) (list []string) {
	for _, r := range rows {
		if r.Value == nil {
			list = append(list, r.Key+"="+*r.Text)
		} else {
			list = append(list, fmt.Sprint(r.Key, "=", *r.Value))
		}
	}
	return list
}

func values(kv ...any) map[string]any {
	m := make(map[string]any)
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}
