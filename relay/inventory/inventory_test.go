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
	"github.com/penstock/penstock/relay/inventory/inventorytest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

const (
	acme   = inventorytest.Acme
	secret = inventorytest.Secret
)

func TestAnInventoryIsApplied(t *testing.T) {
	f := newFixture(t)
	for range 2 {
		applied := f.apply(acme, document.Mode{})
		relaytest.Equal(t, "the accounts", applied.Accounts, []document.AppliedAccount{{ID: 1, Name: "acme"}})
		relaytest.Equal(t, "the removed and kept records", slices.Concat(applied.Removed, applied.Kept), nil)
	}
	ctx := t.Context()
	a, err := f.db.Accounts.AccountByName(ctx, "acme")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the account", a, account.Account{
		ID: 1, Name: "acme", Permissions: []string{"mvno"}, WebhookSecrets: []string{secret}, CallbackURL: "https://example.com/cb",
	})
	hook, err := f.db.Accounts.Token(ctx, account.HashToken("hook-token-0123456"))
	plain, err2 := f.db.Accounts.Token(ctx, account.HashToken("plain-token-0123456"))
	bySource, err3 := f.db.Accounts.TokenBySource(ctx, "hq")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the scopes of the webhook token", hook.Scopes, []account.Scope{account.Webhook})
	relaytest.Equal(t, "the secret of the webhook token", hook.Secret, "shh")
	relaytest.Equal(t, "the scopes of the plain token", plain.Scopes, account.DefaultScopes())
	relaytest.Equal(t, "the token of the source", bySource, hook)
	geo, err := f.db.Inbound.Get(ctx, 1, inbound.Geographic, "g1")
	vmn, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	d, err3 := f.db.Devices.Decoder(ctx, 1, "d1")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the prefix and the action of the geographic relay", []string{geo.Number, geo.Action.Name}, []string{"4478000", "http_get"})
	relaytest.Equal(t, "the action of the virtual number", vmn.Action.Name, "inactive")
	relaytest.Equal(t, "the codec of the decoder", d.Codec, "cayenne_lpp")
	relaytest.Equal(t, "the sensors of the decoder", d.Sensors, []iot.Mapping{{SensorTypeID: "temperature", Key: "temperature_1"}})
	locations, err := f.db.Devices.Locations(ctx, 1)
	types, err2 := f.db.Devices.SensorTypes(ctx)
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the locations", locations, []iot.Location{{ID: "loc1", Name: "Default", Imported: true}})
	relaytest.Equal(t, "the number of sensor types", len(types), 2)
}

func TestOmittedRecordsStay(t *testing.T) {
	f := newFixture(t)
	f.apply(acme, document.Mode{})
	f.apply(`accounts: [{name: acme, tokens: [{token: hook-token-0123456, scopes: [webhook], source: hq}]}, {name: globex, tokens: [{token: other-token-0123456}]}]`, document.Mode{})
	hook, err := f.db.Accounts.Token(t.Context(), account.HashToken("hook-token-0123456"))
	_, err2 := f.db.Accounts.Token(t.Context(), account.HashToken("plain-token-0123456"))
	a, err3 := f.db.Accounts.Account(t.Context(), 1)
	g, err4 := f.db.Accounts.AccountByName(t.Context(), "globex")
	relaytest.NoError(t, err, err2, err3, err4)
	relaytest.Equal(t, "the secret of the webhook token", hook.Secret, "shh")
	relaytest.Equal(t, "the number of webhook secrets", len(a.WebhookSecrets), 1)
	relaytest.Equal(t, "the permissions", a.Permissions, []string{"mvno"})
	relaytest.Equal(t, "the id of the second account", g.ID, 2)
}

// Values that were changed through the REST API stay. The document sets the other values.
func TestAnApplyKeepsValuesChangedOverREST(t *testing.T) {
	f := newFixture(t)
	f.apply(acme, document.Mode{})
	ctx := t.Context()
	changed, err := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	relaytest.NoError(t, err)
	changed.Action = inbound.Action{Name: inbound.HTTPGet, Parameters: []string{"https://rest.example/"}}
	relaytest.NoError(t, f.db.Inbound.Put(ctx, changed))
	_, err = f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error {
		d.Sensors = append(d.Sensors, iot.Mapping{SensorTypeID: "humidity", Key: "rest"})
		return nil
	})
	relaytest.NoError(t, err)
	changedDocument := strings.NewReplacer("name: Probe", "name: Renamed", "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: inventory}").Replace(acme)
	f.apply(changedDocument, document.Mode{})
	d, err := f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the decoder name that the document changed", d.Name, "Renamed")
	relaytest.Equal(t, "the number of sensors of the decoder", len(d.Sensors), 3)
	relaytest.Equal(t, "the relay action changed over REST", v.Action.Name, inbound.HTTPGet)
	_, err = f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { d.Name = "by REST"; return nil })
	relaytest.NoError(t, err)
	a, err := f.db.Accounts.Account(ctx, 1)
	relaytest.NoError(t, err)
	a.CallbackURL = "https://rest.example/cb"
	_, err = f.db.Accounts.PutAccount(ctx, a)
	relaytest.NoError(t, err)
	f.apply(strings.ReplaceAll(acme, "example.com/cb", "example.com/new"), document.Mode{Reset: []string{"relays"}})
	d, err = f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 = f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	a, err3 := f.db.Accounts.Account(ctx, 1)
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the decoder name changed over REST", d.Name, "by REST")
	relaytest.Equal(t, "the relay action after a reset", v.Action.Name, "inactive")
	relaytest.Equal(t, "the callback URL changed over REST", a.CallbackURL, "https://rest.example/cb")
}

func TestAPruneRemovesOmittedRecords(t *testing.T) {
	f := newFixture(t)
	f.apply(acme+"  - {name: globex, tokens: [{token: theirs-token-0123456}], relays: {vmn: [{id: v9, number: \"449000000009\", action: inactive}]}}\n", document.Mode{})
	ctx := t.Context()
	applied := f.apply(`
sensor_types: [{id: temperature, name: Temperature}]
accounts: [{name: acme, callback_url: "https://example.com/2", tokens: [{token: fresh-token-0123456}], relays: {vmn: [{id: v2, number: "449000000009", action: inactive}]}}]
`, document.Mode{Prune: true, AllowRemovals: 100})
	label := func(token string) string { return account.HashToken(token)[:12] }
	relaytest.Equal(t, "the removed records", applied.Removed, []string{
		"account acme: token " + label("hook-token-0123456") + " (hq)", "account acme: token " + label("plain-token-0123456"),
		"account acme: geo relay g1", "account acme: vmn relay v1", "account acme: decoder d1", "account acme: location loc1",
		"account globex: token " + label("theirs-token-0123456"), "account globex: vmn relay v9", "sensor type humidity",
	})
	relaytest.Equal(t, "the kept records", applied.Kept, []string{"account globex: it may hold messages, history or credit"})
	for _, text := range []string{"hook-token-0123456", "plain-token-0123456", "theirs-token-0123456"} {
		if _, err := f.db.Accounts.Token(ctx, account.HashToken(text)); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("token %s: error %v, want kind not found", text, err)
		}
	}
	a, err := f.db.Accounts.Account(ctx, 1)
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v2")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the callback URL", a.CallbackURL, "https://example.com/2")
	relaytest.Equal(t, "the number of the relay, which the other account had", v.Number, "449000000009")
	text := f.declaredJSON()
	if !strings.Contains(text, "webhook_secret") || strings.Contains(text, "globex") {
		t.Errorf("declared records %s, want the webhook secret of acme and no globex", text)
	}
	relaytest.Equal(t, "the id of the account after another apply", f.apply(acme, document.Mode{}).Accounts[0].ID, 1)
}

func TestConcurrentAppliesLoseNoRecords(t *testing.T) {
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
	stored, err := f.loadSet(t.Context())
	accounts, err2 := f.db.Accounts.Accounts(t.Context())
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the numbers of declared and stored accounts", []int{len(stored.set.Accounts), len(accounts)}, []int{12, 12})
	for _, a := range stored.set.Accounts {
		if a.ID == 0 {
			t.Errorf("%s has no id", a.Name)
		}
	}
}

func TestAnInventoryIsEmptyUntilOneIsApplied(t *testing.T) {
	f := newFixture(t)
	relaytest.Equal(t, "whether the inventory is empty at first", relaytest.Must(f.Empty(t.Context()))(t), true)
	f.apply("accounts: [{name: a}]", document.Mode{})
	relaytest.Equal(t, "whether the inventory is empty after an apply", relaytest.Must(f.Empty(t.Context()))(t), false)
}

func TestAnApplyKeepsSensorsChangedOverREST(t *testing.T) {
	f := newFixture(t)
	twoSensors := strings.Replace(acme, "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: humidity_2}", 1)
	f.apply(twoSensors, document.Mode{})
	ctx := t.Context()
	_, err := f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { // deletes one sensor and changes the type of the other
		d.Sensors = []iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}}
		return nil
	})
	relaytest.NoError(t, err)
	for _, tc := range []struct {
		name, body string
		want       []iot.Mapping
	}{
		{"an unchanged document changes nothing", twoSensors, []iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}}},
		{"a new key is added", strings.Replace(twoSensors, "key: humidity_2", "key: humidity_3", 1),
			[]iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}, {SensorTypeID: "humidity", Key: "humidity_3"}}},
		{"a new key of another type is added", strings.Replace(twoSensors, "humidity, key: humidity_2", "temperature, key: humidity_3", 1),
			[]iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}, {SensorTypeID: "temperature", Key: "humidity_3"}}},
	} {
		f.apply(tc.body, document.Mode{})
		relaytest.Equal(t, tc.name, relaytest.Must(f.db.Devices.Decoder(ctx, 1, "d1"))(t).Sensors, tc.want)
	}
}

func TestTheDocumentSetsThePaceOfARelay(t *testing.T) {
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
		f.apply(body, document.Mode{})
		r, err := f.db.Inbound.Get(t.Context(), 1, inbound.VirtualNumber, "v9")
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the pace declared as"+step.pace, r.Pace, step.want)
	}
}

func TestNetworksAreDeclaredAndPruned(t *testing.T) {
	f := newFixture(t)
	wantNetworks := func(want int) {
		t.Helper()
		relaytest.Equal(t, "the number of networks", len(relaytest.Must(f.db.Lookups.Networks(t.Context()))(t)), want)
	}
	f.apply(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"},{"prefix":"49","mcc":"262","mnc":"02","name":"B"}]}`, document.Mode{})
	wantNetworks(2)
	f.apply(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"}]}`, document.Mode{})
	wantNetworks(2)
	f.apply(`{"networks":[{"prefix":"447","mcc":"234","mnc":"15","name":"A"}]}`, document.Mode{Prune: true, AllowRemovals: 100})
	wantNetworks(1)
}

func TestTrunksAreDeclaredAndPruned(t *testing.T) {
	f := newFixture(t)
	wantTrunks := func(step string, want int) {
		t.Helper()
		relaytest.Equal(t, "the number of trunks after "+step, len(relaytest.Must(f.db.Trunks.Trunks(t.Context(), 1))(t)), want)
	}
	const firstDocument = `{"accounts":[{"id":1,"name":"acme","sip":{"trunks":[{"source_ips":["192.0.2.1"]}]}}]}`
	const secondDocument = `{"accounts":[{"id":1,"name":"acme","sip":{"trunks":[{"source_ips":["192.0.2.2","192.0.2.3"]}]}}]}`
	f.apply(firstDocument, document.Mode{})
	wantTrunks("the first document", 1)
	f.apply(secondDocument, document.Mode{})
	wantTrunks("the second document", 2)
	f.apply(secondDocument, document.Mode{Prune: true, AllowRemovals: 100})
	wantTrunks("a prune", 1)
	f.apply(`{"accounts":[{"id":2,"name":"globex"}]}`, document.Mode{Prune: true, AllowRemovals: 100})
	wantTrunks("a prune of the account", 0)
}
