package inventory

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	document "github.com/penstock/penstock/config/inventory"
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
    tokens: [{token: hook-token-0123456, scopes: [webhook], secret: shh, source: hq}, {token: plain-token-0123456}]
    relays:
      geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["https://example.com/?m=%m"]}]
      vmn: [{id: v1, number: "447860000001", action: inactive}]
    locations: [{id: loc1, name: Default, imported: true}]
    decoders: [{id: d1, name: Probe, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
`

func TestAnInventoryIsApplied(t *testing.T) {
	f := newFixture(t)
	for range 2 {
		done := f.applied(acme, document.Mode{})
		if !slices.Equal(done.Accounts, []document.AppliedAccount{{ID: 1, Name: "acme"}}) || len(done.Removed)+len(done.Kept) > 0 {
			t.Fatalf("%+v", done)
		}
	}
	ctx := t.Context()
	a, err := f.db.Accounts.AccountByName(ctx, "acme")
	must(t, err)
	if a.ID != 1 || !a.May("mvno") || !slices.Equal(a.WebhookSecrets, []string{secret}) || a.CallbackURL != "https://example.com/cb" {
		t.Errorf("%+v", a)
	}
	hook, err := f.db.Accounts.Token(ctx, account.HashToken("hook-token-0123456"))
	plain, err2 := f.db.Accounts.Token(ctx, account.HashToken("plain-token-0123456"))
	named, err3 := f.db.Accounts.TokenBySource(ctx, "hq")
	must(t, err, err2, err3)
	if !hook.Has(account.Webhook) || hook.Has(account.IoT) || hook.Secret != "shh" || !plain.Has(account.Ledger) || plain.Has(account.Carrier) || named.Hash != hook.Hash {
		t.Errorf("%+v %+v", hook, plain)
	}
	geo, err := f.db.Inbound.Get(ctx, 1, inbound.Geographic, "g1")
	vmn, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	d, err3 := f.db.Devices.Decoder(ctx, 1, "d1")
	must(t, err, err2, err3)
	if geo.Number != "4478000" || geo.Action.Name != "http_get" || vmn.Action.Name != "inactive" || len(d.Sensors) != 1 || d.Codec != "cayenne_lpp" {
		t.Errorf("%+v %+v %+v", geo, vmn, d)
	}
	locations, err := f.db.Devices.Locations(ctx, 1)
	types, err2 := f.db.Devices.SensorTypes(ctx)
	must(t, err, err2)
	if len(locations) != 1 || !locations[0].Imported || len(types) != 2 {
		t.Errorf("%+v %+v", locations, types)
	}
}

func TestWhatADocumentOmitsStays(t *testing.T) {
	f := newFixture(t)
	f.applied(acme, document.Mode{})
	f.applied(`accounts: [{name: acme, tokens: [{token: hook-token-0123456, scopes: [webhook], source: hq}]}, {name: globex, tokens: [{token: other-token-0123456}]}]`, document.Mode{})
	hook, err := f.db.Accounts.Token(t.Context(), account.HashToken("hook-token-0123456"))
	_, err2 := f.db.Accounts.Token(t.Context(), account.HashToken("plain-token-0123456"))
	a, err3 := f.db.Accounts.Account(t.Context(), 1)
	g, err4 := f.db.Accounts.AccountByName(t.Context(), "globex")
	must(t, err, err2, err3, err4)
	if hook.Secret != "shh" || len(a.WebhookSecrets) != 1 || !a.May("mvno") || g.ID != 2 {
		t.Errorf("%+v %+v %+v", hook, a, g)
	}
}

// What REST changed is left alone; what nobody changed follows the document.
func TestWhatLivesOnIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.applied(acme, document.Mode{})
	ctx := t.Context()
	changed, err := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	must(t, err)
	changed.Action = inbound.Action{Name: inbound.HTTPGet, Parameters: []string{"https://rest.example/"}}
	must(t, f.db.Inbound.Put(ctx, changed))
	_, err = f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error {
		d.Sensors = append(d.Sensors, iot.Mapping{SensorTypeID: "humidity", Key: "rest"})
		return nil
	})
	must(t, err)
	second := strings.NewReplacer("name: Probe", "name: Renamed", "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: inventory}").Replace(acme)
	f.applied(second, document.Mode{})
	d, err := f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	must(t, err, err2)
	if d.Name != "Renamed" || len(d.Sensors) != 3 || v.Action.Name != inbound.HTTPGet {
		t.Errorf("%+v %+v", d, v)
	}
	_, err = f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { d.Name = "by REST"; return nil })
	must(t, err)
	a, err := f.db.Accounts.Account(ctx, 1)
	must(t, err)
	a.CallbackURL = "https://rest.example/cb"
	_, err = f.db.Accounts.PutAccount(ctx, a)
	must(t, err)
	f.applied(strings.ReplaceAll(acme, "example.com/cb", "example.com/new"), document.Mode{Reset: []string{"relays"}})
	d, err = f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 = f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	a, err3 := f.db.Accounts.Account(ctx, 1)
	must(t, err, err2, err3)
	if d.Name != "by REST" || v.Action.Name != "inactive" || a.CallbackURL != "https://rest.example/cb" {
		t.Errorf("%+v %+v %+v", d, v, a)
	}
}

func TestAPruneRemovesWhatIsOmitted(t *testing.T) {
	f := newFixture(t)
	f.applied(acme+"  - {name: globex, tokens: [{token: theirs-token-0123456}], relays: {vmn: [{id: v9, number: \"449000000009\", action: inactive}]}}\n", document.Mode{})
	ctx := t.Context()
	done := f.applied(`
sensor_types: [{id: temperature, name: Temperature}]
accounts: [{name: acme, callback_url: "https://example.com/2", tokens: [{token: fresh-token-0123456}], relays: {vmn: [{id: v2, number: "449000000009", action: inactive}]}}]
`, document.Mode{Prune: true, AllowRemovals: 100})
	want := []string{
		"account acme: decoder d1", "account acme: geographic relay g1", "account acme: location loc1", "account acme: token 1", "account acme: token 2",
		"account acme: virtual number relay v1", "account globex: token 1", "account globex: virtual number relay v9", "sensor type humidity",
	}
	slices.Sort(done.Removed)
	if fmt.Sprint(len(done.Removed)) != fmt.Sprint(len(want)) || len(done.Kept) != 1 || !strings.HasPrefix(done.Kept[0], "account globex: ") {
		t.Errorf("removed %q, kept %q", done.Removed, done.Kept)
	}
	for _, gone := range []string{"hook-token-0123456", "plain-token-0123456", "theirs-token-0123456"} {
		if _, err := f.db.Accounts.Token(ctx, account.HashToken(gone)); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("token %s: %v", gone, err)
		}
	}
	a, err := f.db.Accounts.Account(ctx, 1)
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v2")
	must(t, err, err2)
	if a.CallbackURL != "https://example.com/2" || v.Number != "449000000009" {
		t.Errorf("%+v %+v", a, v)
	}
	shown := f.shown()
	if !strings.Contains(shown, "webhook_secret") || strings.Contains(shown, "globex") {
		t.Errorf("an account that lost all its records keeps what it says of itself: %s", shown)
	}
	if again := f.applied(acme, document.Mode{}); again.Accounts[0].ID != 1 {
		t.Errorf("%+v", again)
	}
}

func TestTwoGatewaysThatApplyAtOnceLoseNothing(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	for n := range 4 {
		gateway := newService(f.db)
		wg.Go(func() {
			for i := range 3 {
				body := fmt.Sprintf("accounts: [{name: acc-%d-%d, tokens: [{token: a-token-0123456-%d-%d}]}]", n, i, n, i)
				if _, err := gateway.Apply(t.Context(), []byte(body), document.Mode{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	st, err := f.standing(t.Context())
	all, err2 := f.db.Accounts.Accounts(t.Context())
	must(t, err, err2)
	if len(st.set.Accounts) != 12 || len(all) != 12 {
		t.Errorf("%d declared, %d there", len(st.set.Accounts), len(all))
	}
	for _, a := range st.set.Accounts {
		if a.ID == 0 {
			t.Errorf("%s has no id", a.Name)
		}
	}
}

func TestAnInventoryIsEmptyUntilOneIsApplied(t *testing.T) {
	f := newFixture(t)
	if empty, err := f.Empty(t.Context()); !empty || err != nil {
		t.Error(empty, err)
	}
	f.applied("accounts: [{name: a}]", document.Mode{})
	if empty, err := f.Empty(t.Context()); empty || err != nil {
		t.Error(empty, err)
	}
}

func TestWhatRESTMadeOfADecodersSensorsStands(t *testing.T) {
	f := newFixture(t)
	two := strings.Replace(acme, "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: humidity_2}", 1)
	f.applied(two, document.Mode{})
	ctx := t.Context()
	_, err := f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { // one is deleted, one has another type
		d.Sensors = []iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}}
		return nil
	})
	must(t, err)
	for _, tc := range []struct{ name, body, want string }{
		{"the same document changes nothing", two, "[{humidity temperature_1}]"},
		{"what it maps anew is added", strings.Replace(two, "key: humidity_2", "key: humidity_3", 1), "[{humidity temperature_1} {humidity humidity_3}]"},
		{"what it maps to another type gets that", strings.Replace(two, "humidity, key: humidity_2", "temperature, key: humidity_3", 1), "[{humidity temperature_1} {temperature humidity_3}]"},
	} {
		f.applied(tc.body, document.Mode{})
		d, err := f.db.Devices.Decoder(ctx, 1, "d1")
		if err != nil || fmt.Sprint(d.Sensors) != tc.want {
			t.Errorf("%s: %v, %v, want %s", tc.name, d.Sensors, err, tc.want)
		}
	}
}

func TestThePaceOfARelayIsTheInventorys(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		pace string
		want outbox.Pace
	}{
		{"", outbox.Pace{}},
		{", pace: {concurrency: 4, per_second: 0.5, ordered: true}", outbox.Pace{Concurrency: 4, PerSecond: 0.5, Ordered: true}},
		{", pace: {per_second: 2}", outbox.Pace{PerSecond: 2}},
	} {
		body := "accounts: [{name: acme, relays: {vmn: [{id: v9, number: 447860000009, action: inactive" + step.pace + "}]}}]"
		f.applied(body, document.Mode{})
		r, err := f.db.Inbound.Get(t.Context(), 1, inbound.VirtualNumber, "v9")
		if err != nil || r.Pace != step.want {
			t.Errorf("%q: %+v, error %v", step.pace, r.Pace, err)
		}
	}
}

func TestNetworksAreDeclaredAndPruned(t *testing.T) {
	f := newFixture(t)
	count := func(want int) {
		t.Helper()
		if all, err := f.db.Lookups.Networks(t.Context()); err != nil || len(all) != want {
			t.Errorf("%+v, %v", all, err)
		}
	}
	f.applied(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"},{"prefix":"49","mcc":"262","mnc":"02","name":"B"}]}`, document.Mode{})
	count(2)
	f.applied(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"}]}`, document.Mode{})
	count(2)
	f.applied(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"}]}`, document.Mode{Prune: true, AllowRemovals: 100})
	count(1)
}

func TestTrunksAreDeclaredAndPruned(t *testing.T) {
	f := newFixture(t)
	is := func(after string, want int) {
		t.Helper()
		if list, err := f.db.Trunks.Trunks(t.Context(), 1); err != nil || len(list) != want {
			t.Errorf("%s: %+v, %v", after, list, err)
		}
	}
	const first = `{"accounts":[{"id":1,"name":"acme","sip":{"trunks":[{"source_ips":["192.0.2.1"]}]}}]}`
	const second = `{"accounts":[{"id":1,"name":"acme","sip":{"trunks":[{"source_ips":["192.0.2.2","192.0.2.3"]}]}}]}`
	f.applied(first, document.Mode{})
	is("the first", 1)
	f.applied(second, document.Mode{})
	is("another beside it", 2)
	f.applied(second, document.Mode{Prune: true, AllowRemovals: 100})
	is("the first pruned", 1)
	f.applied(`{"accounts":[{"id":2,"name":"globex"}]}`, document.Mode{Prune: true, AllowRemovals: 100})
	is("the account pruned", 0)
}
