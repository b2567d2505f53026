package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
)

const siteA = `
document: a
sensor_types: [{id: temperature, name: Temperature}]
accounts:
  - name: acme
    credit: 10
    soap: {username: acme, password: p}
    tokens: [{token: acme-token-0123456}]
    sims: [{iccid: "8944000000000000001"}]
    locations: [{id: loc1, name: One}]
    sip: {trunks: [{source_ips: ["192.0.2.1"]}]}
`

const siteB = `
document: b
accounts:
  - name: acme
    decoders: [{id: d-b, name: B, type: other, sensors: [{sensor_type_id: temperature, key: t}]}]
    relays: {geo: [{id: g-b, prefix: "4478", action: black_hole, iccid: "8944000000000000001"}]}
    sip: {trunks: [{source_ips: ["192.0.2.2"]}]}
  - {name: globex, tokens: [{token: globex-token-0123456}]}
`

func TestAPruneLeavesTheRecordsOfOtherDocuments(t *testing.T) {
	f := newFixture(t)
	f.apply(siteA, document.Mode{})
	f.apply(siteB, document.Mode{})
	f.apply(`accounts: [{name: acme, locations: [{id: unnamed, name: Unnamed}]}]`, document.Mode{})
	declared := f.declaredJSON()
	applied := f.apply(siteB, document.Mode{Prune: true})
	relaytest.Equal(t, "the records that the prune of b removed or kept", slices.Concat(applied.Removed, applied.Kept), nil)
	relaytest.Equal(t, "the declared records", f.declaredJSON(), declared)
	applied = f.apply("document: b", document.Mode{Prune: true, AllowRemovals: 4})
	want := []string{"account acme: geo relay g-b", "account acme: decoder d-b", "account acme: trunk 192.0.2.2", "account globex: token " + account.HashToken("globex-token-0123456")[:12]}
	relaytest.Equal(t, "the records removed by the prune of an empty b", applied.Removed, want)
	relaytest.Equal(t, "the records kept by it", applied.Kept, []string{"account globex: it may hold messages, history or credit"})
	trunks, err := f.db.Trunks.Trunks(t.Context(), 1)
	locations, err2 := f.db.Devices.Locations(t.Context(), 1)
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the number of trunks and locations", []int{len(trunks), len(locations)}, []int{1, 2})
	relaytest.Equal(t, "the account of the login", f.accountOfLogin("acme", "p"), 1)
	reapplied := f.apply(siteA, document.Mode{Prune: true})
	relaytest.Equal(t, "the changes of a second apply of a", slices.Concat(reapplied.Added, reapplied.Changed, reapplied.Removed), nil)
}

func TestARecordOfAnotherDocumentIsRefused(t *testing.T) {
	f := newFixture(t)
	f.apply(siteA, document.Mode{})
	declared := f.declaredJSON()
	for name, tc := range map[string]struct{ body, path, want string }{
		"sensor type":               {"document: b\nsensor_types: [{id: temperature, name: T}]", "sensor_types[0]", `sensor type temperature belongs to the document "a"`},
		"location":                  {"document: b\naccounts: [{name: acme, locations: [{id: loc1, name: One}]}]", "accounts[0].locations[0]", `account acme: location loc1 belongs to the document "a"`},
		"account settings":          {"document: b\naccounts: [{name: acme, permissions: [mvno]}]", "accounts[0].permissions", `account acme belongs to the document "a"`},
		"SOAP login":                {"document: b\naccounts: [{name: acme, soap: {username: other, password: p}}]", "accounts[0].soap", `belongs to the document "a"`},
		"from the default document": {"sensor_types: [{id: temperature, name: T}]", "sensor_types[0]", `belongs to the document "a"`},
		"token of another account":  {"document: b\naccounts: [{name: other, tokens: [{token: acme-token-0123456}]}]", "accounts[0].tokens[0].token", `already taken by account "acme" of the document "a"`},
		"invalid document name":     {"document: a b", "document", "expected 1 to 64 letters"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []document.Mode{{}, {Prune: true, AllowRemovals: 100}, {DryRun: true}} {
				mistakes := f.applyInvalid(t, tc.body, m)
				relaytest.Equal(t, "the path of the mistake", mistakes[0].Path, tc.path)
				if !strings.Contains(mistakes[0].Text, tc.want) {
					t.Errorf("mode %+v: mistake %q, want %q", m, mistakes[0].Text, tc.want)
				}
			}
		})
	}
	relaytest.Equal(t, "the declared records", f.declaredJSON(), declared)
}

func TestADocumentAdoptsItsDeclaredRecords(t *testing.T) {
	f := newFixture(t)
	f.apply(strings.TrimPrefix(siteA, "\ndocument: a"), document.Mode{}) // the default document
	const adopting = "document: first\naccounts: [{name: acme, soap: {username: acme, password: p}, tokens: [{token: acme-token-0123456}], sims: [{iccid: \"8944000000000000001\"}]}]"
	applied := f.apply(adopting, document.Mode{Adopt: true})
	token := account.HashToken("acme-token-0123456")[:12]
	want := []string{"account acme: token " + token, "account acme: SOAP username acme", "account acme: SIM 8944000000000000001", "account acme"}
	for i := range want {
		want[i] += " (from default)"
	}
	relaytest.Equal(t, "the adopted records", applied.Changed, want)
	relaytest.Equal(t, "the added and removed records", slices.Concat(applied.Added, applied.Removed), nil)
	for _, name := range []string{"first", "default"} {
		d, err := f.Document(t.Context(), name, View{})
		relaytest.NoError(t, err)
		encoded, err := json.Marshal(d)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the changes of a second apply of "+name, outcome(f.apply(string(encoded), document.Mode{Prune: true})), nil)
	}
	if _, err := f.Apply(t.Context(), []byte("accounts: [{name: acme, credit: 5}]"), document.Mode{}); err == nil || !strings.Contains(err.Error(), `belongs to the document "first"`) {
		t.Errorf("apply of account settings by the default document: error %v, want one that names the document first", err)
	}
}

func TestAPruneOfManyRecordsMustBeAllowed(t *testing.T) {
	f := newFixture(t)
	var sims []string
	for i := range 20 {
		sims = append(sims, fmt.Sprintf(`{iccid: "89440000000000000%02d"}`, i))
	}
	withSIMs := func(n int) string {
		return `accounts: [{name: acme, locations: [{id: l, name: L}], sims: [` + strings.Join(sims[:n], ", ") + `]}]`
	}
	f.apply(withSIMs(20), document.Mode{})
	applied := f.apply(withSIMs(18), document.Mode{Prune: true})
	relaytest.Equal(t, "the removals of a tenth, and the removals to allow", []int{len(applied.Removed), applied.AllowRemovals}, []int{2, 0})
	for _, tc := range []struct {
		name, body string
		needs      int
	}{
		{"more than a tenth", withSIMs(16), 2},
		{"all records of a kind", strings.Replace(withSIMs(18), "locations: [{id: l, name: L}], ", "", 1), 1},
		{"an empty document", "accounts: []", 19},
	} {
		mistakes := f.applyInvalid(t, tc.body, document.Mode{Prune: true, AllowRemovals: tc.needs - 1})
		relaytest.Equal(t, tc.name+": the path of the mistake", mistakes[0].Path, "allow_removals")
		applied := f.apply(tc.body, document.Mode{Prune: true, DryRun: true})
		relaytest.Equal(t, tc.name+": the removals, and the removals to allow", []int{len(applied.Removed), applied.AllowRemovals}, []int{tc.needs, tc.needs})
	}
	applied = f.apply("accounts: []", document.Mode{Prune: true, AllowRemovals: 19})
	relaytest.Equal(t, "the number of allowed removals", len(applied.Removed), 19)
}

func TestAPruneKeepsRecordsThatOtherDocumentsUse(t *testing.T) {
	f := newFixture(t)
	f.apply(siteA, document.Mode{})
	f.apply(siteB, document.Mode{})
	applied := f.apply("document: a\naccounts: [{name: acme, tokens: [{token: acme-token-0123456}]}]", document.Mode{Prune: true, AllowRemovals: 100})
	want := []string{
		`sensor type temperature: a decoder of account acme in the document "b" uses it`,
		`account acme: SIM 8944000000000000001: a geo relay of account acme in the document "b" uses it`,
	}
	relaytest.Equal(t, "the kept records", applied.Kept, want)
	relaytest.Equal(t, "the number of removals", len(applied.Removed), 3)
	types, err := f.db.Devices.SensorTypes(t.Context())
	_, err2 := f.db.SIMs.Get(t.Context(), 1, "8944000000000000001")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the number of sensor types", len(types), 1)
}

func TestADryRunReportsTheResultOfAnApply(t *testing.T) {
	f := newFixture(t)
	changed := strings.NewReplacer("name: Humidity", "name: Moisture", "name: Probe", "name: Tester", "name: Default", "name: Renamed", "scopes: [webhook], ", "").Replace(acme) +
		"    ledgers: [{id: l, name: L}]\n    soap: {username: u, password: p}\n    sip: {trunks: [{source_ips: [\"192.0.2.1\"]}]}\n    sims: [{iccid: \"8944000000000000001\"}]\n  - {name: globex, credit: 3}\n"
	fewer := strings.Replace(acme, "    locations: [{id: loc1, name: Default, imported: true}]\n", "", 1)
	steps := []struct {
		name, body string
		mode       document.Mode
	}{
		{"new document", acme, document.Mode{}},
		{"unchanged document", acme, document.Mode{}},
		{"changed document", changed, document.Mode{}},
		{"reset", strings.Replace(changed, "credit: 3", "credit: 4", 1), document.Mode{Reset: []string{"credit", "sims", "relays", "rules"}}},
		{"prune", fewer, document.Mode{Prune: true, AllowRemovals: 100}},
	}
	for _, step := range steps {
		oldJSON := f.declaredJSON()
		dryRunMode := step.mode
		dryRunMode.DryRun = true
		planned := f.apply(step.body, dryRunMode)
		if newJSON := f.declaredJSON(); newJSON != oldJSON {
			t.Fatalf("%s: the dry run changed the declared records from\n%s\nto\n%s", step.name, oldJSON, newJSON)
		}
		applied := f.apply(step.body, step.mode)
		planned.DryRun, planned.Accounts, applied.Accounts = false, nil, nil
		relaytest.Equal(t, step.name+": the result of the dry run", planned, applied)
		changes := slices.Concat(applied.Added, applied.Changed, applied.Removed)
		relaytest.Equal(t, fmt.Sprintf("%s: whether nothing changed (%q)", step.name, changes), len(changes) == 0, step.name == "unchanged document")
	}
}

func TestAnExportAppliesWithoutAChange(t *testing.T) {
	f := newFixture(t)
	f.apply(acme+"    sims: [{iccid: \"8944000000000000001\", pin: \"1234\"}]\n"+withRules[strings.Index(withRules, "    rules:"):], document.Mode{})
	f.apply(siteB[:strings.Index(siteB, "    relays:")], document.Mode{})
	ctx := t.Context()
	// Change the declared records over the REST API and by jobs.
	_, err := f.db.Inbound.Change(ctx, 1, inbound.VirtualNumber, "v1", func(r *inbound.Relay) error {
		r.Action = inbound.Action{Name: inbound.HTTPGet, Parameters: []string{"https://rest.example/"}}
		return nil
	})
	_, err2 := f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { d.Name = "by REST"; return nil })
	_, err3 := f.db.SIMs.Change(ctx, 1, "8944000000000000001", func(s *sim.SIM) error { s.State, s.RequestedState = sim.Active, sim.Active; return nil })
	_, _, err4 := f.rules.Change(ctx, 1, "warm", func(r *rule.Rule) error { r.Name = "by REST"; return nil })
	relaytest.NoError(t, err, err2, err3, err4, f.rules.Delete(ctx, 1, "archive"), f.db.Accounts.SetCallback(ctx, 1, "https://rest.example/cb"), f.db.Credit.Set(ctx, 1, 77, f.Now()))
	relaytest.NoError(t, f.db.Devices.CreateDecoder(ctx, 1, iot.Decoder{ID: "rest", Name: "created by REST", Type: "other", Codec: "json"}))
	changeByREST(t, f)
	if _, err := f.Document(ctx, "", View{Present: true}); relay.KindOf(err) != relay.KindInvalid || !strings.Contains(fmt.Sprint(relay.FieldsOf(err)), "default, b") {
		t.Errorf("Document without a name: error %v, want the names of both documents", err)
	}
	if _, err := f.Document(ctx, "c", View{Present: true}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Document with an unknown name: error %v, want kind not found", err)
	}
	for _, name := range []string{"default", "b"} {
		d, err := f.Document(ctx, name, View{Present: true})
		relaytest.NoError(t, err)
		text, err := document.EncodeYAML(d, "exported")
		relaytest.NoError(t, err)
		if name == "default" {
			for _, word := range []string{"https://rest.example/\n", "https://rest.example/cb", "credit: 77", "current_state: active", "id: rest\n", "by REST", "id: rest-relay", "name: Depot"} {
				if !strings.Contains(string(text), word) {
					t.Errorf("the export lacks %q:\n%s", word, text)
				}
			}
			if strings.Contains(string(text), "archive") || strings.Contains(string(text), "d-b") || strings.Contains(string(text), "id: g1") {
				t.Errorf("the export has deleted records or those of another document:\n%s", text)
			}
		}
		for _, m := range []document.Mode{{DryRun: true, Prune: true}, {Prune: true, AllowRemovals: 2}} {
			applied := f.apply(string(text), m)
			applied.Removed = slices.DeleteFunc(applied.Removed, func(s string) bool { // deleted over the REST API
				return s == "account acme: rule archive" || s == "account acme: geo relay g1"
			})
			relaytest.Equal(t, fmt.Sprintf("the changes of the export of %s in the mode %+v", name, m), outcome(applied), nil)
		}
	}
	stored, err := f.db.SIMs.Get(ctx, 1, "8944000000000000001")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the PIN", stored.Codes.PIN, "1234")
	relaytest.Equal(t, "the state of the SIM", stored.State, sim.Active)
}

// changeByREST changes, creates and deletes records of account 1 over the REST API.
func changeByREST(t *testing.T, f *fixture) {
	t.Helper()
	ctx := t.Context()
	err := f.db.Inbound.Create(ctx, inbound.Relay{
		ID: "rest-relay", Account: 1, Kind: inbound.VirtualNumber, Number: "447860000009", Action: inbound.Action{Name: inbound.Inactive},
	})
	_, _, err2 := f.ChangeAccount(ctx, 1, func(a *account.Account) {
		a.Permissions, a.WebhookSecrets = nil, []string{"whsec_" + strings.Repeat("QUJD", 8)}
	})
	_, _, err3 := f.AddToken(ctx, 1, []string{"iot"}, "", "")
	relaytest.NoError(t, err, err2, err3, f.db.Inbound.Delete(ctx, 1, inbound.Geographic, "g1"),
		f.db.Devices.PutLocation(ctx, 1, iot.Location{ID: "rest-location", Name: "Depot"}))
}

func TestAnExportWithSecretsAppliesToAnotherGateway(t *testing.T) {
	f, empty, ctx := newFixture(t), newFixture(t), t.Context()
	f.apply(acme+"    sims: [{iccid: \"8944000000000000001\", pin: \"1234\"}]\n    soap: {username: acme, password: p}\n", document.Mode{})
	changeByREST(t, f)
	exported := func(f *fixture) string {
		t.Helper()
		d, err := f.Document(ctx, "", View{Present: true, Secrets: true})
		relaytest.NoError(t, err)
		return string(relaytest.Must(document.EncodeYAML(d, "exported"))(t))
	}
	text := exported(f)
	if strings.Contains(text, "masked") || strings.Contains(text, "hook-token") {
		t.Errorf("the export masks secrets or contains the text of a token:\n%s", text)
	}
	relaytest.Equal(t, "the changes on the same gateway", outcome(f.apply(text, document.Mode{DryRun: true})), nil)
	empty.apply(text, document.Mode{})
	relaytest.Equal(t, "the export of the other gateway", exported(empty), text)
	relaytest.Equal(t, "the account of the login on the other gateway", empty.accountOfLogin("acme", "p"), 1)
	stored, err := empty.db.Accounts.Token(ctx, account.HashToken("hook-token-0123456"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the secret of a token on the other gateway", stored.Secret, "shh")
}
