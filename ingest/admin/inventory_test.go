package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const acme = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}, {id: humidity, name: Humidity}]
accounts:
  - name: acme
    permissions: [mvno]
    webhook_secret: ` + secret + `
    callback_url: https://example.com/cb
    tokens: [{token: hook, scopes: [webhook], secret: shh, source: hq}, {token: plain}]
    relays:
      geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["https://example.com/?m=%m"]}]
      vmn: [{id: v1, number: "447860000001", action: inactive}]
    locations: [{id: loc1, name: Default, imported: true}]
    decoders: [{id: d1, name: Probe, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
`

func (o *office) apply(document, query string) string {
	o.t.Helper()
	return o.ask("PUT /admin/inventory"+query, document)
}

// applied applies a document that has to be taken.
func (o *office) applied(document, query string) (done Applied) {
	o.t.Helper()
	body, ok := strings.CutPrefix(o.apply(document, query), "200 ")
	if !ok {
		o.t.Fatalf("%s: %s", document, o.apply(document, query))
	}
	answer := struct{ Data *Applied }{&done}
	must(o.t, json.Unmarshal([]byte(body), &answer))
	return done
}

func TestAnInventoryIsApplied(t *testing.T) {
	o := newOffice(t)
	const answer = `200 {"data":{"accounts":[{"id":1,"name":"acme"}],"removed":[],"kept":[]}}`
	for range 2 {
		if got := o.apply(acme, ""); got != answer {
			t.Fatalf("%s, want %s", got, answer)
		}
	}
	ctx := t.Context()
	a, err := o.db.Accounts.AccountByName(ctx, "acme")
	must(t, err)
	if a.ID != 1 || !a.May("mvno") || !slices.Equal(a.WebhookSecrets, []string{secret}) || a.CallbackURL != "https://example.com/cb" {
		t.Errorf("%+v", a)
	}
	hook, err := o.db.Accounts.Token(ctx, account.HashToken("hook"))
	plain, err2 := o.db.Accounts.Token(ctx, account.HashToken("plain"))
	named, err3 := o.db.Accounts.TokenBySource(ctx, "hq")
	must(t, err, err2, err3)
	if !hook.Has(account.Webhook) || hook.Has(account.IoT) || hook.Secret != "shh" || !plain.Has(account.Ledger) || plain.Has(account.Carrier) || named.Hash != hook.Hash {
		t.Errorf("%+v %+v", hook, plain)
	}
	geo, err := o.db.Inbound.Get(ctx, 1, inbound.Geographic, "g1")
	vmn, err2 := o.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	d, err3 := o.db.Devices.Decoder(ctx, 1, "d1")
	must(t, err, err2, err3)
	if geo.Number != "4478000" || geo.Action.Name != "http_get" || vmn.Action.Name != "inactive" || len(d.Sensors) != 1 || d.Codec != "cayenne_lpp" {
		t.Errorf("%+v %+v %+v", geo, vmn, d)
	}
	locations, err := o.db.Devices.Locations(ctx, 1)
	types, err2 := o.db.Devices.SensorTypes(ctx)
	must(t, err, err2)
	if len(locations) != 1 || !locations[0].Imported || len(types) != 2 {
		t.Errorf("%+v %+v", locations, types)
	}
}

func TestASecretIsMaskedAndAMaskIsUnderstood(t *testing.T) {
	o := newOffice(t)
	o.applied(acme, "")
	shown := strings.TrimPrefix(o.ask("GET /admin/inventory", ""), "200 ")
	for _, hidden := range []string{`"hook"`, `"plain"`, "shh", secret} {
		if strings.Contains(shown, hidden) {
			t.Errorf("%s is shown: %s", hidden, shown)
		}
	}
	o.applied(shown, "")
	if again := strings.TrimPrefix(o.ask("GET /admin/inventory", ""), "200 "); again != shown {
		t.Errorf("after it was handed back:\n got %s\nwant %s", again, shown)
	}
	hook, err := o.db.Accounts.Token(t.Context(), account.HashToken("hook"))
	a, err2 := o.db.Accounts.Account(t.Context(), 1)
	must(t, err, err2)
	if hook.Secret != "shh" || !slices.Equal(a.WebhookSecrets, []string{secret}) {
		t.Errorf("%+v %+v", hook, a)
	}
}

func TestWhatADocumentOmitsStays(t *testing.T) {
	o := newOffice(t)
	o.applied(acme, "")
	o.applied(`accounts: [{name: acme, tokens: [{token: hook, scopes: [webhook], source: hq}]}, {name: globex, tokens: [{token: other}]}]`, "")
	hook, err := o.db.Accounts.Token(t.Context(), account.HashToken("hook"))
	_, err2 := o.db.Accounts.Token(t.Context(), account.HashToken("plain"))
	a, err3 := o.db.Accounts.Account(t.Context(), 1)
	g, err4 := o.db.Accounts.AccountByName(t.Context(), "globex")
	must(t, err, err2, err3, err4)
	if hook.Secret != "shh" || len(a.WebhookSecrets) != 1 || !a.May("mvno") || g.ID != 2 {
		t.Errorf("%+v %+v %+v", hook, a, g)
	}
}

// What REST changed is left alone; what nobody changed follows the document.
func TestWhatLivesOnIsLeftAlone(t *testing.T) {
	o := newOffice(t)
	o.applied(acme, "")
	ctx := t.Context()
	changed, err := o.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	must(t, err)
	changed.Action = inbound.Action{Name: inbound.HTTPGet, Parameters: []string{"https://rest.example/"}}
	must(t, o.db.Inbound.Put(ctx, changed))
	_, err = o.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error {
		d.Sensors = append(d.Sensors, iot.Mapping{SensorTypeID: "humidity", Key: "rest"})
		return nil
	})
	must(t, err)
	second := strings.NewReplacer("name: Probe", "name: Renamed", "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: inventory}").Replace(acme)
	o.applied(second, "")
	d, err := o.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 := o.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	must(t, err, err2)
	if d.Name != "Renamed" || len(d.Sensors) != 3 || v.Action.Name != inbound.HTTPGet {
		t.Errorf("%+v %+v", d, v)
	}
	_, err = o.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { d.Name = "by REST"; return nil })
	must(t, err)
	a, err := o.db.Accounts.Account(ctx, 1)
	must(t, err)
	a.CallbackURL = "https://rest.example/cb"
	_, err = o.db.Accounts.PutAccount(ctx, a)
	must(t, err)
	o.applied(strings.ReplaceAll(acme, "example.com/cb", "example.com/new"), "?reset=relays")
	d, err = o.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 = o.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	a, err3 := o.db.Accounts.Account(ctx, 1)
	must(t, err, err2, err3)
	if d.Name != "by REST" || v.Action.Name != "inactive" || a.CallbackURL != "https://rest.example/cb" {
		t.Errorf("%+v %+v %+v", d, v, a)
	}
}

func TestAPruneRemovesWhatIsOmitted(t *testing.T) {
	o := newOffice(t)
	o.applied(acme+"  - {name: globex, tokens: [{token: theirs}], relays: {vmn: [{id: v9, number: \"449000000009\", action: inactive}]}}\n", "")
	ctx := t.Context()
	done := o.applied(`
sensor_types: [{id: temperature, name: Temperature}]
accounts: [{name: acme, callback_url: "https://example.com/2", tokens: [{token: fresh}], relays: {vmn: [{id: v2, number: "449000000009", action: inactive}]}}]
`, "?prune=true")
	want := []string{
		"account acme: decoder d1", "account acme: geographic relay g1", "account acme: location loc1", "account acme: token 1", "account acme: token 2",
		"account acme: virtual number relay v1", "account globex: token 1", "account globex: virtual number relay v9", "sensor type humidity",
	}
	slices.Sort(done.Removed)
	if fmt.Sprint(len(done.Removed)) != fmt.Sprint(len(want)) || len(done.Kept) != 1 || !strings.HasPrefix(done.Kept[0], "account globex: ") {
		t.Errorf("removed %q, kept %q", done.Removed, done.Kept)
	}
	for _, gone := range []string{"hook", "plain", "theirs"} {
		if _, err := o.db.Accounts.Token(ctx, account.HashToken(gone)); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("token %s: %v", gone, err)
		}
	}
	a, err := o.db.Accounts.Account(ctx, 1)
	v, err2 := o.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v2")
	must(t, err, err2)
	if a.CallbackURL != "https://example.com/2" || v.Number != "449000000009" {
		t.Errorf("%+v %+v", a, v)
	}
	shown := o.ask("GET /admin/inventory", "")
	if !strings.Contains(shown, "webhook_secret") || strings.Contains(shown, "globex") {
		t.Errorf("an account that lost all its records keeps what it says of itself: %s", shown)
	}
	if again := o.applied(acme, ""); again.Accounts[0].ID != 1 {
		t.Errorf("%+v", again)
	}
}

func TestAMistakeIsRefusedWhole(t *testing.T) {
	o := newOffice(t)
	o.applied(acme, "")
	before := o.ask("GET /admin/inventory", "")
	for _, tc := range []struct{ name, document, query, path string }{
		{"nothing", "", "", ""},
		{"a wrong type", "accounts: [{name: x, permissions: 7}]", "", "accounts[0].permissions"},
		{"a private address", `accounts: [{name: x, relays: {vmn: [{id: v, number: "449", action: http_get, parameters: ["https://10.0.0.1/"]}]}}]`, "", "accounts[0].relays.vmn[0]"},
		{"a number of another account", `accounts: [{name: x, relays: {vmn: [{id: v, number: "447860000001", action: inactive}]}}]`, "", "accounts[0].relays.vmn[0].number"},
		{"an id that another account has", "sensor_types: [{id: new, name: New}]\naccounts: [{name: globex, id: 1}]", "", "accounts[0].id"},
		{"another id for an account", "sensor_types: [{id: new, name: New}]\naccounts: [{name: acme, id: 9}]", "", "accounts[0].id"},
		{"an action without its SIM", `accounts: [{name: acme, permissions: [mvno], sims: [{iccid: "8944000000000000001"}], relays: {geo: [{id: g1, prefix: "4478000", action: mvno}]}}]`, "", "accounts[0].relays.geo[0].iccid"},
		{"an action without its SIM, with a prune", `accounts: [{name: other, permissions: [mvno], sims: [{iccid: "8944000000000000001"}], relays: {geo: [{id: g, prefix: "4478000", action: mvno}]}}]`, "?prune=true", "accounts[0].relays.geo[0].iccid"},
		{"a reset of nothing known", acme, "?reset=everything", "reset"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := o.apply(tc.document, tc.query)
			if !strings.HasPrefix(got, "422 ") || !strings.Contains(got, `"`+tc.path) {
				t.Errorf("%s, want a mistake at %s", got, tc.path)
			}
			if after := o.ask("GET /admin/inventory", ""); after != before {
				t.Errorf("changed: %s", after)
			}
			if types, err := o.db.Devices.SensorTypes(t.Context()); err != nil || len(types) != 2 {
				t.Errorf("sensor types %+v, %v", types, err)
			}
		})
	}
}

func TestTwoGatewaysThatApplyAtOnceLoseNothing(t *testing.T) {
	o := newOffice(t)
	var wg sync.WaitGroup
	for n := range 4 {
		gateway := newInventory(o.db)
		wg.Go(func() {
			for i := range 3 {
				document := fmt.Sprintf("accounts: [{name: acc-%d-%d, tokens: [{token: tok-%d-%d}]}]", n, i, n, i)
				if _, err := gateway.Apply(t.Context(), []byte(document), Mode{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, d, err := o.inventory.load(t.Context())
	all, err2 := o.db.Accounts.Accounts(t.Context())
	must(t, err, err2)
	if len(d.Accounts) != 12 || len(all) != 12 {
		t.Errorf("%d declared, %d there", len(d.Accounts), len(all))
	}
	for _, a := range d.Accounts {
		if a.ID == 0 {
			t.Errorf("%s has no id", a.Name)
		}
	}
}

func TestAnInventoryIsEmptyUntilOneIsApplied(t *testing.T) {
	o := newOffice(t)
	if empty, err := o.inventory.Empty(t.Context()); !empty || err != nil {
		t.Error(empty, err)
	}
	if got := o.ask("GET /admin/inventory", ""); got != "200 {}" {
		t.Error(got)
	}
	o.applied("accounts: [{name: a}]", "")
	if empty, err := o.inventory.Empty(t.Context()); empty || err != nil {
		t.Error(empty, err)
	}
}

func TestWhatRESTMadeOfADecodersSensorsStands(t *testing.T) {
	o := newOffice(t)
	two := strings.Replace(acme, "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: humidity_2}", 1)
	o.applied(two, "")
	ctx := t.Context()
	_, err := o.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { // one is deleted, one has another type
		d.Sensors = []iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}}
		return nil
	})
	must(t, err)
	for _, tc := range []struct{ name, document, want string }{
		{"the same document changes nothing", two, "[{humidity temperature_1}]"},
		{"what it maps anew is added", strings.Replace(two, "key: humidity_2", "key: humidity_3", 1), "[{humidity temperature_1} {humidity humidity_3}]"},
		{"what it maps to another type gets that", strings.Replace(two, "humidity, key: humidity_2", "temperature, key: humidity_3", 1), "[{humidity temperature_1} {temperature humidity_3}]"},
	} {
		o.applied(tc.document, "")
		d, err := o.db.Devices.Decoder(ctx, 1, "d1")
		if err != nil || fmt.Sprint(d.Sensors) != tc.want {
			t.Errorf("%s: %v, %v, want %s", tc.name, d.Sensors, err, tc.want)
		}
	}
}

func TestThePaceOfARelayIsTheInventorys(t *testing.T) {
	o := newOffice(t)
	for _, step := range []struct {
		pace string
		want outbox.Pace
	}{
		{"", outbox.Pace{}},
		{", pace: {concurrency: 4, per_second: 0.5, ordered: true}", outbox.Pace{Concurrency: 4, PerSecond: 0.5, Ordered: true}},
		{", pace: {per_second: 2}", outbox.Pace{PerSecond: 2}},
	} {
		body := "accounts: [{name: acme, relays: {vmn: [{id: v9, number: 447860000009, action: inactive" + step.pace + "}]}}]"
		if got := o.ask("PUT /admin/inventory", body); !strings.HasPrefix(got, "200") {
			t.Fatal(got)
		}
		r, err := o.db.Inbound.Get(t.Context(), 1, inbound.VirtualNumber, "v9")
		if err != nil || r.Pace != step.want {
			t.Errorf("%q: %+v, error %v", step.pace, r.Pace, err)
		}
	}
}
