package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
)

const keptFields = `
sensor_types: [{id: temperature, name: Temperature}, {id: humidity, name: Humidity}]
accounts:
  - name: acme
    credit: 10
    callback_url: https://example.com/first
    relays:
      geo: [{id: site-04, prefix: "4478", action: http_get, parameters: ["https://example.com/first"]}]
      vmn: [{id: site-05, number: "447860000001", action: http_get, parameters: ["https://example.com/first"]}]
    decoders: [{id: d1, name: Probe, type: other, sensors: [{sensor_type_id: temperature, key: t}, {sensor_type_id: humidity, key: h}]}]
    rules:
      - {id: changed, name: first, on: reading, actions: [{action: http_post, parameters: ["https://example.com/first"]}]}
      - {id: deleted, name: first, on: reading, actions: [{action: http_post, parameters: ["https://example.com/first"]}]}
    sims: [{iccid: "8944000000000000001", current_state: pending}, {iccid: "8944000000000000002", current_state: active, service_4g: true}]
`

func TestAnApplyReportsKeptValues(t *testing.T) {
	f := newFixture(t)
	relaytest.Equal(t, "the values that the first apply kept", f.apply(keptFields, document.Mode{}).Kept, []string{})
	ctx := t.Context()
	_, err := f.db.Inbound.Change(ctx, 1, inbound.VirtualNumber, "site-05", func(r *inbound.Relay) error {
		r.Action.Parameters, r.Filter = []string{"https://rest.example/"}, `text != ""`
		r.ChangedAt = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
		return nil
	})
	_, err2 := f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error {
		d.Name, d.Sensors = "by REST", d.Sensors[:1]
		return nil
	})
	changed, _, err3 := f.rules.Change(ctx, 1, "changed", func(r *rule.Rule) error { r.Name = "by REST"; return nil })
	_, err4 := f.db.SIMs.Change(ctx, 1, "8944000000000000001", func(s *sim.SIM) error {
		s.State, s.RequestedState, s.Service4G = sim.Active, sim.Active, true
		return nil
	})
	for _, e := range []audit.Entry{
		{ID: "1", At: time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC), Actor: "bob", Operation: "updateVMNRelay", Target: "site-05"},
		{ID: "2", At: time.Date(2026, 11, 20, 7, 59, 59, 0, time.UTC), Actor: "alice", Operation: "updateVMNRelay", Target: "site-05"},
		{ID: "3", At: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), Actor: "carol", Operation: "updateRule", Target: "site-05"},
		{ID: "4", At: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), Actor: "dave", Operation: "updateDecoder", Target: "d1"},
		{ID: "5", At: time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC), Actor: "erin", Operation: "updateDecoder", Target: "d1"},
	} {
		e.Account, e.Outcome = 1, audit.Done
		if e.Actor == "erin" {
			e.Outcome = audit.Refused
		}
		relaytest.NoError(t, f.db.Audit.Begin(ctx, e))
	}
	relaytest.NoError(t, err, err2, err3, err4, f.rules.Delete(ctx, 1, "deleted"),
		f.db.Accounts.SetCallback(ctx, 1, "https://rest.example/"), f.db.Credit.Set(ctx, 1, 9, f.Now()))

	// The document changes a relay that the REST API has left unchanged.
	body := strings.Replace(keptFields, `"4478", action: http_get, parameters: ["https://example.com/first"]`, `"4478", action: email, parameters: ["a@example.com"]`, 1)
	want := []string{
		"account acme: callback_url: kept, changed over the API; only the API changes it",
		"account acme: credit: kept as it is; --reset credit takes the document's",
		"account acme: decoders.d1.sensors.h: kept, changed over the API on 2026-11-22 by dave; only the API changes it",
		"account acme: decoders.d1.name: kept, changed over the API on 2026-11-22 by dave; only the API changes it",
		"account acme: rules.changed.name: kept, changed over the API on " + changed.UpdatedAt.Format(time.DateOnly) + "; --reset rules takes the document's",
		"account acme: rules.deleted: kept deleted, as the API has left it; --reset rules creates it",
		"account acme: relays.site-04.action: kept as it is; --reset relays takes the document's",
		"account acme: relays.site-04.parameters: kept as it is; --reset relays takes the document's",
		"account acme: relays.site-05.parameters: kept, changed over the API on 2026-11-20 by alice; --reset relays takes the document's",
		"account acme: relays.site-05.filter: kept, changed over the API on 2026-11-20 by alice; --reset relays takes the document's",
		"account acme: sims.8944000000000000001.current_state: kept as it is; --reset sims takes the document's",
		"account acme: sims.8944000000000000001.service_4g: kept as it is; --reset sims takes the document's",
	}
	for _, mode := range []document.Mode{{DryRun: true}, {}, {}} {
		applied := f.apply(body, mode)
		relaytest.Equal(t, fmt.Sprintf("the values that an apply in the mode %+v kept", mode), applied.Kept, want)
		relaytest.Equal(t, fmt.Sprintf("the changes in the mode %+v", mode), slices.Concat(applied.Added, applied.Changed, applied.Removed), nil)
	}
	fields, missing, err := f.Drift(ctx, "default")
	relaytest.NoError(t, err)
	var texts []string
	for _, d := range fields {
		texts = append(texts, d.String())
	}
	relaytest.Equal(t, "the drift", texts, want)
	relaytest.Equal(t, "declared and present value of the decoder name", [2]any{fields[3].Declared, fields[3].Present}, [2]any{"Probe", "by REST"})
	relaytest.Equal(t, "the missing records", missing, nil)
	applied := f.apply(body, document.Mode{Reset: []string{"credit", "relays", "rules", "sims"}})
	relaytest.Equal(t, "the values that an apply with every reset kept", applied.Kept, []string{want[0], want[2], want[3]})
	relaytest.Equal(t, "the values that the next apply kept", f.apply(body, document.Mode{}).Kept, []string{want[0], want[2], want[3]})
}

func TestManyKeptSIMsAreCounted(t *testing.T) {
	f := newFixture(t)
	var sims []string
	for i := range maxKeptSIMs + 5 {
		sims = append(sims, fmt.Sprintf(`{iccid: "8944000000000000%03d", current_state: pending}`, i))
	}
	declared := `accounts: [{name: acme, sims: [` + strings.Join(sims, ", ") + `]}]`
	f.apply(declared, document.Mode{})
	lines := f.apply(strings.ReplaceAll(declared, "pending", "active"), document.Mode{}).Kept
	relaytest.Equal(t, "the number of lines", len(lines), maxKeptSIMs+1)
	relaytest.Equal(t, "the last line", lines[maxKeptSIMs], "account acme: sims: 5 more fields: kept as they are; --reset sims takes the document's")
}

func TestAResetOfOneAccountKeepsOtherAccounts(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	const declared = "accounts: [{name: acme, credit: 10}, {name: globex, credit: 10}, {name: initech, credit: 10}]"
	f.apply(declared, document.Mode{})
	for id := range relay.AccountID(3) {
		relaytest.NoError(t, f.db.Credit.Set(ctx, id+1, 3, f.Now()))
	}
	f.apply(declared, document.Mode{Reset: []string{"credit"}, ResetAccounts: []string{"acme"}})
	applied := f.apply(declared, document.Mode{Reset: []string{"credit"}, ResetAccounts: []string{"2"}})
	relaytest.Equal(t, "the changes of the second apply", outcome(applied), []string{"account globex: credit", "account initech: credit: kept as it is; --reset credit takes the document's"})
	balances := relaytest.Must(f.db.Credit.Balances(ctx, []relay.AccountID{1, 2, 3}))(t)
	relaytest.Equal(t, "the balances", balances, map[relay.AccountID]int64{1: 10, 2: 10, 3: 3})
	for _, name := range []string{"nobody", "9"} {
		_, err := f.Apply(ctx, []byte(declared), document.Mode{Reset: []string{"credit"}, ResetAccounts: []string{name}})
		relaytest.Equal(t, "the error for the account "+name, relay.FieldsOf(err)["account"], []string{"The document does not declare an account " + name + "."})
	}
}

func TestSpentCreditIsNoDrift(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	const declared = "accounts: [{name: acme, credit: 10}]"
	f.apply(declared, document.Mode{})
	change := func(id string, credits int64, reason credit.Reason) {
		t.Helper()
		_, err := f.db.Credit.Apply(ctx, credit.Change{ID: id, Account: 1, Credits: credits, Reason: reason, At: f.Now()})
		relaytest.NoError(t, err)
	}
	wantDrift := func(label string, want ...any) {
		t.Helper()
		fields, _, err := f.Drift(ctx, "")
		relaytest.NoError(t, err)
		var present []any
		for _, d := range fields {
			present = append(present, d.Present)
		}
		relaytest.Equal(t, "the drift after "+label, present, want)
		relaytest.Equal(t, "the number of values that an apply keeps after "+label, len(f.apply(declared, document.Mode{}).Kept), len(want))
	}
	change("s1", -4, credit.Sent)
	change("l1", -1, credit.Lookup)
	change("r1", 2, credit.Refund)
	wantDrift("charges and a refund")
	change("a1", 5, credit.Adjusted)
	wantDrift("an adjustment", int64(12))
	f.apply(declared, document.Mode{Reset: []string{"credit"}})
	change("s2", -4, credit.Sent)
	wantDrift("a reset and a charge")
	change("a2", 5, credit.Adjusted)
	change("a3", -5, credit.Adjusted)
	wantDrift("two adjustments that cancel out")
}

func TestARecordThatTheAPIDeletedIsMissing(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	f.apply(keptFields, document.Mode{})
	relaytest.NoError(t, f.db.Inbound.Delete(ctx, 1, inbound.Geographic, "site-04"))
	fields, missing, err := f.Drift(ctx, "")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the drift", fields, nil)
	relaytest.Equal(t, "the missing records", missing, []string{"account acme: geo relay site-04"})
	relaytest.Equal(t, "the records that the next apply adds", f.apply(keptFields, document.Mode{}).Added, missing)
	if _, _, err := f.Drift(ctx, "other"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Drift of an unknown document: error %v, want kind not found", err)
	}
}
