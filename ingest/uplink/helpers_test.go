package uplink

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/decoders/netserver/netservertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// readings is a store of readings in memory.
type readings struct{ iottest.Memory }

// stored returns the stored points as "identifier key", sorted.
func (r *readings) stored() (points []string) {
	for _, p := range r.Points() {
		points = append(points, p.Identifier+" "+p.Key)
	}
	slices.Sort(points)
	return points
}

// flow processes posts from the request to the readings.
type flow struct {
	t        *testing.T
	app      *fiber.App
	surface  *Surface
	intake   *intake.Intake
	log      *journal.Log
	db       *recordstest.Records
	cache    iot.Cache
	readings *readings
	run      func() // starts processing
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	return newFlowOn(t, recordstest.Open(t))
}

// newFlowOn returns a flow on a database.
func newFlowOn(t *testing.T, db *recordstest.Records) *flow {
	t.Helper()
	f := &flow{t: t, db: db, cache: cachetest.Open(t).IoT(), readings: &readings{}}
	var err error
	f.createRecords()
	service := iot.New(f.db.Devices, f.cache, f.readings, catalogtest.Compile, iot.Options{})
	discardLogger := slog.New(slog.DiscardHandler)
	p := NewProcessor(service, discardLogger)
	f.log, err = journal.Open(t.TempDir(), journal.Options{Logger: discardLogger})
	relaytest.NoError(t, err)
	f.intake, err = intake.New(event.Uplink, "n1", f.log, f.db.Statuses("n1"), p, intake.Options{Logger: discardLogger, Linger: -1})
	relaytest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	f.run = sync.OnceFunc(func() {
		wg.Go(func() {
			if err := f.intake.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = f.log.Close()
		_ = f.db.Close()
	})
	f.app = httpd.New(httpd.Options{Logger: discardLogger})
	f.surface = New(f.intake, p, f.db.Devices, Options{Logger: discardLogger, BodyLimit: 4000, Now: signedAt})
	f.surface.Mount(f.app, httpd.NewAuth(httpd.AuthDeps{Tokens: f.db.Accounts, Now: time.Now}))
	f.app.Use(httpd.NotFound)
	return f
}

// createRecords creates sensor types, decoders and tokens of the accounts 1 and 2.
func (f *flow) createRecords() {
	f.t.Helper()
	ctx, s := f.t.Context(), f.db.Devices
	relaytest.NoError(f.t, s.PutSensorType(ctx, iot.SensorType{ID: "temperature", Name: "Temperature", MetricUnits: "°C", ImperialUnits: "°F"}))
	for _, acct := range []relay.AccountID{1, 2} {
		relaytest.NoError(f.t, s.PutLocation(ctx, acct, iot.Location{ID: "loc", Imported: true}),
			s.CreateDecoder(ctx, acct, iot.Decoder{ID: "d1", Codec: "json", Sensors: []iot.Mapping{{SensorTypeID: "temperature", Key: "temperature"}, {SensorTypeID: "temperature", Key: "T&<>"}}}))
	}
	hook := []account.Scope{account.Webhook}
	relaytest.NoError(f.t, f.db.Accounts.PutTokens(ctx, []account.Token{
		{Hash: account.HashToken("hook-1"), Account: 1, Scopes: hook},
		{Hash: account.HashToken("hook-2"), Account: 2, Scopes: hook},
		{Hash: account.HashToken("signing"), Account: 1, Scopes: hook, Secret: netservertest.ThingParkKey, Source: "hq"},
		{Hash: account.HashToken("unsigned"), Account: 1, Scopes: hook, Source: "bare"},
		{Hash: account.HashToken("customer"), Account: 1, Scopes: account.DefaultScopes()},
	}))
}

// post sends a post and returns the status and the body of the response.
func (f *flow) post(target, token, body string, headers ...string) (int, string) {
	f.t.Helper()
	status, got, _ := f.call(http.MethodPost, target, token, body, headers...)
	return status, got
}

// call sends a request, with a token unless it is empty.
func (f *flow) call(method, target, token, body string, headers ...string) (int, string, http.Header) {
	f.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.app.Test(r, 20_000)
	relaytest.NoError(f.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	relaytest.NoError(f.t, err)
	return resp.StatusCode, string(b), resp.Header
}

// waitProcessed waits until all accepted entries are processed.
func (f *flow) waitProcessed() {
	f.t.Helper()
	redistest.Await(f.t, "all entries are processed", func(context.Context) bool { return f.intake.Status().Lag == 0 })
}

// lastEvent returns the newest event.
func (f *flow) lastEvent() (newest event.Event) {
	f.t.Helper()
	relaytest.NoError(f.t, f.intake.Events(f.t.Context(), event.Filter{}, 0, func(e event.Event, _ uint64) bool {
		newest = e
		return false
	}))
	return newest
}

// events returns the events in a state, oldest first.
func (f *flow) events(s event.State) (events []event.Event) {
	f.t.Helper()
	relaytest.NoError(f.t, f.intake.Events(f.t.Context(), event.Filter{State: s}, 0, func(e event.Event, _ uint64) bool {
		events = append(events, e)
		return true
	}))
	slices.SortFunc(events, func(a, b event.Event) int { return cmp.Compare(len(a.ID), len(b.ID))*2 + cmp.Compare(a.ID, b.ID) })
	return events
}
