package iotapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// readingStore is an in-memory store of readings that records the last queries.
type readingStore struct {
	iottest.Memory
	query          iot.Query
	buckets        []iot.Bucket // result of every aggregate query
	aggregateQuery iot.AggregateQuery
}

func (r *readingStore) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	r.query = q
	return r.Memory.Readings(ctx, q)
}

func (r *readingStore) Aggregate(_ context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	r.aggregateQuery = q
	return r.buckets, nil
}

// api is the IoT surface over real records.
type api struct {
	t        *testing.T
	app      *fiber.App
	db       *recordstest.Records
	service  *iot.Service
	readings *readingStore
	now      time.Time

	rules      *rule.Service
	dispatched []outbox.Delivery // deliveries that rules dispatched

	submitted string // the last submission
	submitErr error  // returned by Submit
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, db: recordstest.Open(t), readings: &readingStore{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	lastID := 0
	a.service = iot.New(a.db.Devices, cachetest.Open(t).IoT(), a.readings, catalogtest.Compile, iot.Options{
		Now:   func() time.Time { return a.now },
		NewID: func() string { lastID++; return fmt.Sprint("id", lastID) },
		Evaluate: func(ctx context.Context, acct relay.AccountID, v iot.Version, frames []iot.StoredFrame) error {
			return a.rules.Evaluate(ctx, acct, v, frames)
		},
	})
	a.rules = newRules(t, a)
	a.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	New(Deps{IoT: a.service, Submit: a, Rules: a.rules, Preview: preview}).Mount(a.app, httpd.NewAuth(httpd.AuthDeps{Tokens: a.db.Accounts, Now: time.Now}))
	a.app.Use(httpd.NotFound)
	relaytest.NoError(t, a.db.Accounts.PutTokens(t.Context(), []account.Token{
		{Hash: account.HashToken("acme"), Account: 1, Scopes: account.DefaultScopes()},
		{Hash: account.HashToken("globex"), Account: 2, Scopes: account.DefaultScopes()},
		{Hash: account.HashToken("hook"), Account: 1, Scopes: []account.Scope{account.Webhook}},
	}))
	return a
}

// newRules returns the rule service that evaluates the frames of a.
func newRules(t *testing.T, a *api) *rule.Service {
	t.Helper()
	lastID := 0
	s, err := rule.New(rule.Deps{
		Store: a.db.Rules, Fleet: a.service, Deliveries: outbox.Sender{Dispatcher: a, Lease: 30 * time.Second},
		CheckURL: func(url string) error {
			if strings.Contains(url, "10.0.0.1") {
				return errors.New("a private address")
			}
			return nil
		},
	}, rule.Options{Now: func() time.Time { return a.now }, NewID: func() string { lastID++; return fmt.Sprint("rule", lastID) }, Logger: slog.New(slog.DiscardHandler)})
	relaytest.NoError(t, err)
	return s
}

// Dispatch records the deliveries.
func (a *api) Dispatch(ds []outbox.Delivery) { a.dispatched = append(a.dispatched, ds...) }

// preview returns the request of d unchanged.
func preview(_ context.Context, d outbox.Delivery) (outbox.Request, string, error) {
	return *d.Request, "", nil
}

// Submit records the submission and reports one updated sensor per frame.
func (a *api) Submit(_ context.Context, acct relay.AccountID, path, identifier string, body []byte) (iot.UpdatedSensors, error) {
	if a.submitErr != nil {
		return iot.UpdatedSensors{}, a.submitErr
	}
	a.submitted = fmt.Sprint(acct, " ", path, " ", identifier, " ", string(body))
	frames, _ := netserver.ParseSubmission(identifier, body)
	return iot.UpdatedSensors{Sensors: make([]iot.ReadingRow, len(frames))}, nil
}

// fill creates the device id1 with a decoder, two sensors and a reading of each.
func (a *api) fill() {
	a.t.Helper()
	ctx, s := a.t.Context(), a.db.Devices
	relaytest.NoError(a.t,
		s.PutSensorType(ctx, iot.SensorType{ID: "temperature", Name: "Temperature", MetricUnits: "°C", ImperialUnits: "°F", ImperialSlope: 1.8, ImperialOffset: 32}),
		s.PutSensorType(ctx, iot.SensorType{ID: "state", Name: "State"}),
		s.PutLocation(ctx, 1, iot.Location{ID: "loc1", Imported: true}),
		s.CreateDecoder(ctx, 1, iot.Decoder{ID: "d1", Name: "Probe", Description: "A probe", Type: iot.Other, Codec: "json", Sensors: []iot.Mapping{
			{SensorTypeID: "temperature", Key: "t"}, {SensorTypeID: "state", Key: "door"},
		}}))
	ingested, err := a.service.Ingest(ctx, []iot.Arrival{{
		RecordID: "n1-u1", Account: 1, DecoderID: "d1", ReceivedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: "AA:BB:CC:00:11:22", Name: "probe", Object: map[string]any{"t": 21.5, "door": "open & shut"}},
	}})
	relaytest.NoError(a.t, err)
	if ingested[0].Refused != "" {
		a.t.Fatal(ingested[0].Refused)
	}
	_, err = s.ChangeDevice(ctx, 1, "id1", func(d *iot.Device) error {
		d.Longitude, d.Latitude, d.Parameters, d.Comment = new(-2.0943), new(57.0), `{"k":1}`, "<on the quay>"
		return nil
	})
	relaytest.NoError(a.t, err)
}

// ask sends a request, whose line is "METHOD path", and returns "status body".
func (a *api) ask(line, token, body string, headers ...string) string {
	a.t.Helper()
	method, target, _ := strings.Cut(line, " ")
	if body != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	if token != "" {
		headers = append([]string{"Authorization", token}, headers...)
	}
	status, got, _ := answertest.Send(a.t, a.app, answertest.Request(method, target, body, headers...))
	return strings.TrimSpace(fmt.Sprint(status, " ", got))
}
