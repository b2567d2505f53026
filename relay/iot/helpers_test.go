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

// gateway is a service with real stores: SQLite for records and for readings.
type gateway struct {
	*iot.Service
	t        *testing.T
	db       *db.DB
	records  *iot.Store
	cache    *faulty
	readings *switched
	now      time.Time
	o        iot.Options
	compile  iot.Compiler

	// reads and writes count the statements that read records and the transactions.
	reads, writes atomic.Int32
	// onRead, if it is set, runs after each of those reads.
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

// afterReads runs do when records have been read n times more.
func (g *gateway) afterReads(n int, do func()) {
	g.t.Cleanup(func() {
		if n > 0 {
			g.t.Errorf("records were not read %d times more", n)
		}
	})
	g.onRead = func() {
		if n--; n == 0 {
			g.onRead = nil
			do()
		}
	}
}

// switched is a reading store that can be down and refuse keys.
type switched struct {
	iot.ReadingStore
	mu      sync.Mutex
	down    error
	refuse  map[string]string // key → reason
	written int
	asked   int // calls of Latest and LastStored
	// meanwhile runs after the latest points were read.
	meanwhile func()
	radio     []iot.RadioData // as they were written
}

func (s *switched) Write(ctx context.Context, b iot.Readings) ([]iot.Refused, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	var refused []iot.Refused
	kept := iot.Readings{Radio: b.Radio}
	for i, p := range b.Points {
		if reason, no := s.refuse[p.Key]; no {
			refused = append(refused, iot.Refused{Point: i, Radio: -1, Reason: reason})
			continue
		}
		kept.Points = append(kept.Points, p)
	}
	if reason, no := s.refuse["uplink"]; no && len(b.Radio) > 0 {
		refused = append(refused, iot.Refused{Point: -1, Radio: 0, Reason: reason})
	}
	s.written += len(kept.Points)
	s.radio = append(s.radio, kept.Radio...)
	_, err := s.ReadingStore.Write(ctx, kept)
	return refused, err
}

func (s *switched) Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]iot.Point, error) {
	s.asked++
	if s.down != nil {
		return nil, s.down
	}
	points, err := s.ReadingStore.Latest(ctx, acct, deviceID, types)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return points, err
}

func (s *switched) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	s.asked++
	if s.down != nil {
		return nil, s.down
	}
	return s.ReadingStore.LastStored(ctx, acct, deviceIDs)
}

func (s *switched) Forget(ctx context.Context, acct relay.AccountID, old []iot.Expired) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	return s.ReadingStore.Forget(ctx, acct, old)
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	store := relaytest.Must(readings.Open(t.TempDir(), ""))(t)
	t.Cleanup(func() { _ = store.Close() })
	g := &gateway{
		t: t, cache: &faulty{Cache: embeddedtest.Cache(t).IoT()}, readings: &switched{ReadingStore: store},
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), compile: catalogtest.Compile,
	}
	g.db = dbtest.Open(t, db.Options{Observe: g.observe})
	g.records = iot.NewStore(g.db, rule.OnDevice)
	g.o.Now = func() time.Time { return g.now }
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
func (g *gateway) start() { g.Service = iot.New(g.records, g.cache, g.readings, g.compile, g.o) }

// decoder returns a decoder of posted values. Each key is mapped to the type of its name, or to
// state.
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

// frame returns an uplink of the device with values, which account 1 posted with decoder_id d1.
func (g *gateway) frame(record string, values map[string]any) iot.Arrival {
	return iot.Arrival{
		Record: record, Account: 1, DecoderID: "d1", ReceivedAt: g.now,
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: eui, IsDevEUI: true, Name: "probe", DedupID: record, Object: values},
	}
}

func (g *gateway) ingest(arrivals ...iot.Arrival) []iot.Outcome {
	g.t.Helper()
	out, err := g.Ingest(g.t.Context(), arrivals)
	relaytest.NoError(g.t, err)
	if len(out) != len(arrivals) {
		g.t.Fatalf("%d outcomes of %d", len(out), len(arrivals))
	}
	return out
}

// stored ingests frames and fails the test unless all are stored.
func (g *gateway) stored(arrivals ...iot.Arrival) []iot.Outcome {
	g.t.Helper()
	out := g.ingest(arrivals...)
	for i, o := range out {
		if o.Refused != "" || len(o.Lost) > 0 {
			g.t.Fatalf("frame %d: refused %q, lost %q; want it stored", i, o.Refused, o.Lost)
		}
	}
	return out
}

func (g *gateway) device(acct relay.AccountID) iot.Device {
	g.t.Helper()
	d, err := g.DeviceByIdentifier(g.t.Context(), acct, eui)
	relaytest.NoError(g.t, err)
	return d
}

// history returns a device's readings, newest first, as "key=value".
func (g *gateway) history(acct relay.AccountID) (out []string) {
	g.t.Helper()
	records, err := g.Readings(g.t.Context(), iot.Query{Account: acct, DeviceID: g.device(acct).ID}, iot.Metric)
	relaytest.NoError(g.t, err)
	return brief(records)
}

func (g *gateway) latest() []string {
	g.t.Helper()
	records, err := g.Latest(g.t.Context(), 1, g.device(1).ID, iot.Metric)
	relaytest.NoError(g.t, err)
	return brief(records)
}

func brief(records []iot.ReadingRow) (out []string) {
	for _, r := range records {
		if r.Value == nil {
			out = append(out, r.Key+"="+*r.Text)
		} else {
			out = append(out, fmt.Sprint(r.Key, "=", *r.Value))
		}
	}
	return out
}

func values(kv ...any) map[string]any {
	m := make(map[string]any)
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}
