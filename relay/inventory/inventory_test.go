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
		done := f.applied(acme, document.Mode{})
		relaytest.Equal(t, "the accounts", done.Accounts, []document.AppliedAccount{{ID: 1, Name: "acme"}})
		relaytest.Equal(t, "what was removed or kept", slices.Concat(done.Removed, done.Kept), nil)
	}
	ctx := t.Context()
	a, err := f.db.Accounts.AccountByName(ctx, "acme")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the account", a, account.Account{
		ID: 1, Name: "acme", Permissions: []string{"mvno"}, WebhookSecrets: []string{secret}, CallbackURL: "https://example.com/cb",
	})
	hook, err := f.db.Accounts.Token(ctx, account.HashToken("hook-token-0123456"))
	plain, err2 := f.db.Accounts.Token(ctx, account.HashToken("plain-token-0123456"))
	named, err3 := f.db.Accounts.TokenBySource(ctx, "hq")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the scopes of the webhook token", hook.Scopes, []account.Scope{account.Webhook})
	relaytest.Equal(t, "its secret", hook.Secret, "shh")
	relaytest.Equal(t, "the scopes of the plain token", plain.Scopes, account.DefaultScopes())
	relaytest.Equal(t, "the token of the source", named, hook)
	geo, err := f.db.Inbound.Get(ctx, 1, inbound.Geographic, "g1")
	vmn, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	d, err3 := f.db.Devices.Decoder(ctx, 1, "d1")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the prefix and the action of the geographic relay", []string{geo.Number, geo.Action.Name}, []string{"4478000", "http_get"})
	relaytest.Equal(t, "the action of the virtual number", vmn.Action.Name, "inactive")
	relaytest.Equal(t, "the codec of the decoder", d.Codec, "cayenne_lpp")
	relaytest.Equal(t, "its sensors", d.Sensors, []iot.Mapping{{SensorTypeID: "temperature", Key: "temperature_1"}})
	locations, err := f.db.Devices.Locations(ctx, 1)
	types, err2 := f.db.Devices.SensorTypes(ctx)
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the locations", locations, []iot.Location{{ID: "loc1", Name: "Default", Imported: true}})
	relaytest.Equal(t, "the number of sensor types", len(types), 2)
}

func TestWhatADocumentOmitsStays(t *testing.T) {
	f := newFixture(t)
	f.applied(acme, document.Mode{})
	f.applied(`accounts: [{name: acme, tokens: [{token: hook-token-0123456, scopes: [webhook], source: hq}]}, {name: globex, tokens: [{token: other-token-0123456}]}]`, document.Mode{})
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

// Values that REST has changed stay, and other values are those of the document.
func TestWhatLivesOnIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.applied(acme, document.Mode{})
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
	second := strings.NewReplacer("name: Probe", "name: Renamed", "key: temperature_1}", "key: temperature_1}, {sensor_type_id: humidity, key: inventory}").Replace(acme)
	f.applied(second, document.Mode{})
	d, err := f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the decoder's name, which the document changed", d.Name, "Renamed")
	relaytest.Equal(t, "the number of its sensors", len(d.Sensors), 3)
	relaytest.Equal(t, "the relay's action, which REST changed", v.Action.Name, inbound.HTTPGet)
	_, err = f.db.Devices.ChangeDecoder(ctx, 1, "d1", func(d *iot.Decoder) error { d.Name = "by REST"; return nil })
	relaytest.NoError(t, err)
	a, err := f.db.Accounts.Account(ctx, 1)
	relaytest.NoError(t, err)
	a.CallbackURL = "https://rest.example/cb"
	_, err = f.db.Accounts.PutAccount(ctx, a)
	relaytest.NoError(t, err)
	f.applied(strings.ReplaceAll(acme, "example.com/cb", "example.com/new"), document.Mode{Reset: []string{"relays"}})
	d, err = f.db.Devices.Decoder(ctx, 1, "d1")
	v, err2 = f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	a, err3 := f.db.Accounts.Account(ctx, 1)
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the decoder's name, which REST changed", d.Name, "by REST")
	relaytest.Equal(t, "the relay's action after a reset", v.Action.Name, "inactive")
	relaytest.Equal(t, "the callback URL, which REST changed", a.CallbackURL, "https://rest.example/cb")
}

func TestAPruneRemovesWhatIsOmitted(t *testing.T) {
	f := newFixture(t)
	f.applied(acme+"  - {name: globex, tokens: [{token: theirs-token-0123456}], relays: {vmn: [{id: v9, number: \"449000000009\", action: inactive}]}}\n", document.Mode{})
	ctx := t.Context()
	done := f.applied(`
sensor_types: [{id: temperature, name: Temperature}]
accounts: [{name: acme, callback_url: "https://example.com/2", tokens: [{token: fresh-token-0123456}], relays: {vmn: [{id: v2, number: "449000000009", action: inactive}]}}]
`, document.Mode{Prune: true, AllowRemovals: 100})
	label := func(token string) string { return account.HashToken(token)[:12] }
	relaytest.Equal(t, "what was removed", done.Removed, []string{
		"account acme: token " + label("hook-token-0123456") + " (hq)", "account acme: token " + label("plain-token-0123456"),
		"account acme: geo relay g1", "account acme: vmn relay v1", "account acme: decoder d1", "account acme: location loc1",
		"account globex: token " + label("theirs-token-0123456"), "account globex: vmn relay v9", "sensor type humidity",
	})
	relaytest.Equal(t, "what was kept", done.Kept, []string{"account globex: it may hold messages, history or credit"})
	for _, gone := range []string{"hook-token-0123456", "plain-token-0123456", "theirs-token-0123456"} {
		if _, err := f.db.Accounts.Token(ctx, account.HashToken(gone)); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("the token %s: %v, want that it is not found", gone, err)
		}
	}
	a, err := f.db.Accounts.Account(ctx, 1)
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v2")
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the callback URL", a.CallbackURL, "https://example.com/2")
	relaytest.Equal(t, "the number that the other account gave up", v.Number, "449000000009")
	shown := f.shown()
	if !strings.Contains(shown, "webhook_secret") || strings.Contains(shown, "globex") {
		t.Errorf("an account that lost all its records keeps what it says of itself: %s", shown)
	}
	relaytest.Equal(t, "the account when it is declared again", f.applied(acme, document.Mode{}).Accounts[0].ID, 1)
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
	stored, err := f.loadSet(t.Context())
	all, err2 := f.db.Accounts.Accounts(t.Context())
	relaytest.NoError(t, err, err2)
	relaytest.Equal(t, "the number of declared and of stored accounts", []int{len(stored.set.Accounts), len(all)}, []int{12, 12})
	for _, a := range stored.set.Accounts {
		if a.ID == 0 {
			t.Errorf("%s has no id", a.Name)
		}
	}
}

func TestAnInventoryIsEmptyUntilOneIsApplied(t *testing.T) {
	f := newFixture(t)
	relaytest.Equal(t, "whether none was applied at first", relaytest.Must(f.Empty(t.Context()))(t), true)
	f.applied("accounts: [{name: a}]", document.Mode{})
	relaytest.Equal(t, "whether none was applied afterwards", relaytest.Must(f.Empty(t.Context()))(t), false)
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
	relaytest.NoError(t, err)
	for _, tc := range []struct {
		name, body string
		want       []iot.Mapping
	}{
		{"the same document changes nothing", two, []iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}}},
		{"what it maps anew is added", strings.Replace(two, "key: humidity_2", "key: humidity_3", 1),
			[]iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}, {SensorTypeID: "humidity", Key: "humidity_3"}}},
		{"what it maps to another type gets that", strings.Replace(two, "humidity, key: humidity_2", "temperature, key: humidity_3", 1),
			[]iot.Mapping{{SensorTypeID: "humidity", Key: "temperature_1"}, {SensorTypeID: "temperature", Key: "humidity_3"}}},
	} {
		f.applied(tc.body, document.Mode{})
		relaytest.Equal(t, tc.name, relaytest.Must(f.db.Devices.Decoder(ctx, 1, "d1"))(t).Sensors, tc.want)
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
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the pace of"+step.pace, r.Pace, step.want)
	}
}

func TestNetworksAreDeclaredAndPruned(t *testing.T) {
	f := newFixture(t)
	count := func(want int) {
		t.Helper()
		relaytest.Equal(t, "the number of networks", len(relaytest.Must(f.db.Lookups.Networks(t.Context()))(t)), want)
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
		relaytest.Equal(t, "the number of trunks after "+after, len(relaytest.Must(f.db.Trunks.Trunks(t.Context(), 1))(t)), want)
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
