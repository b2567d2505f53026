package inventory

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/relay/cache/cachetest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

// fixture is a Service with a database.
type fixture struct {
	*Service
	t     *testing.T
	db    *recordstest.Records
	rules *rule.Service
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := recordstest.Open(t)
	rules := newRules(t, db)
	s := newService(db)
	s.Rules = rules
	return &fixture{s, t, db, rules}
}

// newRules returns a rule service that receives no frames.
func newRules(t *testing.T, db *recordstest.Records) *rule.Service {
	t.Helper()
	devices := iot.New(db.Devices, cachetest.Open(t).IoT(), nil, catalogtest.Compile, iot.Options{})
	s, err := rule.New(rule.Deps{Store: db.Rules, Fleet: devices, Deliveries: outbox.Sender{Dispatcher: noDispatcher{}}}, rule.Options{})
	relaytest.NoError(t, err)
	return s
}

// noDispatcher is never called because the rules receive no frames.
type noDispatcher struct{}

func (noDispatcher) Dispatch([]outbox.Delivery) {}

// newService returns the service of a gateway; several gateways may share a database.
func newService(db *recordstest.Records) *Service {
	return New(Deps{
		Store: NewStore(db.DB), Accounts: db.Accounts, Devices: db.Devices, Relays: db.Inbound, Ledgers: db.Ledgers, Networks: db.Lookups, Credit: db.Credit, Trunks: db.Trunks, SIMs: db.SIMs, Audit: db.Audit,
		CheckURL: func(url string) error {
			if strings.Contains(url, "10.0.0.1") {
				return errors.New("a private address")
			}
			return nil
		},
		CheckSource: func(string, string) error { return nil },
		Now:         func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
	})
}

// apply applies a valid document.
func (f *fixture) apply(body string, m document.Mode) document.ApplyResult {
	f.t.Helper()
	applied, err := f.Apply(f.t.Context(), []byte(body), m)
	if err != nil {
		f.t.Fatalf("%s: %v", body, err)
	}
	return applied
}

// applyInvalid applies an invalid document and returns its mistakes.
func (f *fixture) applyInvalid(t *testing.T, body string, m document.Mode) document.Mistakes {
	t.Helper()
	_, err := f.Apply(t.Context(), []byte(body), m)
	mistakes, ok := errors.AsType[document.Mistakes](err)
	if !ok {
		t.Fatalf("%s in the mode %+v: error %v, want mistakes", body, m, err)
	}
	return mistakes
}

// outcome lists the records that an apply added, changed, removed and kept.
func outcome(applied document.ApplyResult) []string {
	return slices.Concat(applied.Added, applied.Changed, applied.Removed, applied.Kept)
}

// declaredJSON returns the JSON of the declared records with masked secrets.
func (f *fixture) declaredJSON() string {
	f.t.Helper()
	d, err := f.Declared(f.t.Context())
	text, err2 := json.Marshal(d)
	relaytest.NoError(f.t, err, err2)
	return string(text)
}
