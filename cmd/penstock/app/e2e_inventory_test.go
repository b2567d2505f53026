package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/account"
)

// declared returns the inventory as the operator sees it.
func (g *gateway) declared() string {
	g.t.Helper()
	a := g.admin().get("/admin/inventory")
	if a.status != 200 {
		g.t.Fatalf("inventory: %d %s", a.status, a.body)
	}
	return a.body
}

// applied is what an apply says it did.
type applied struct {
	Data struct {
		Accounts []struct {
			ID   int64
			Name string
		}
		Removed, Kept []string
	}
}

func (g *gateway) apply(query, document string) applied {
	g.t.Helper()
	var done applied
	g.admin().put("/admin/inventory"+query, document).into(g.t, &done)
	return done
}

func testInventory(t *testing.T, s *site) {
	k := newSink(t, nil)
	document := fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox())
	g := start(t, s, document)
	acme := g.as("acme-all-0123456")
	before := g.declared()
	t.Run("the file named by the settings was applied at the start", func(t *testing.T) {
		acme.get("/iot/devices").is(t, 200, `{"data": []}`)
	})
	t.Run("applied again it changes nothing", func(t *testing.T) {
		first, second := g.apply("", document), g.apply("", document)
		if first.Data.Accounts[0] != second.Data.Accounts[0] || len(second.Data.Removed)+len(second.Data.Kept) > 0 {
			t.Errorf("%+v then %+v", first, second)
		}
		same(t, "the inventory", g.declared(), before)
	})
	t.Run("it shows no secret", func(t *testing.T) {
		for _, secret := range []string{"acme-all-0123456", "globex-all-0123456", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"} {
			if strings.Contains(before, secret) {
				t.Errorf("the inventory shows %s:\n%s", secret, before)
			}
		}
	})
	t.Run("a mask handed back leaves the secret as it is", func(t *testing.T) {
		g.apply("", before)
		same(t, "the inventory", g.declared(), before)
		acme.get("/iot/devices").is(t, 200, `{"data": []}`)
		acme.text("i1", "447800055501", "signed")
		if h := k.await(t, "/get/447700900123/in", 1); !signedBy(h, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") {
			t.Errorf("not signed with the secret: %v", h.header)
		}
	})
	changed := strings.Replace(document, `action: black_hole}`, `action: http_get, parameters: ["`+k.url+`/changed?m=%m"]}`, 1)
	t.Run("a relay's action lives on through another apply", func(t *testing.T) {
		g.apply("", changed)
		acme.text("i2", "447800355501", "for nobody")
		g.settled()
		if sent := g.deliveries("relay=g-hole"); len(sent) != 0 {
			t.Errorf("deliveries: %+v", sent)
		}
	})
	t.Run("a reset of relays sets it to what the document says", func(t *testing.T) {
		g.apply("?reset=relays", changed)
		acme.text("i3", "447800355501", "for somebody")
		sameValues(t, k.await(t, "/changed", 1).query, map[string]string{"m": "for somebody"})
	})
	t.Run("a reset of something else is refused", func(t *testing.T) {
		g.admin().put("/admin/inventory?reset=relays,weather", changed).mentions(t, 422, `"reset"`, "want credit, sims, relays or rules")
	})
	t.Run("a key added over REST lives on, and so does a sensor's slope", func(t *testing.T) {
		g.apply("", fixture(t, "inventory.yaml"))
		acme.post("/iot/decoders/sent/sensors", `{"sensor_type_id": "temperature", "key": "soil"}`).mentions(t, 200, "soil")
		acme.post("/webhooks/generic/bed?decoder_id=sent", `{"soil": 4}`).mentions(t, 200, `"value":4`)
		sensor := only(acme.latest(acme.device("bed")), "soil")[0].SensorID
		acme.do("PATCH", "/iot/sensors/"+sensor, `{"slope": 10}`).mentions(t, 200)
		g.apply("?reset=credit,sims,relays", fixture(t, "inventory.yaml"))
		acme.get("/iot/decoders/sent/sensors").mentions(t, 200, "soil")
		acme.post("/webhooks/generic/bed", `{"soil": 4}`).mentions(t, 200, `"value":40`)
	})
	t.Run("JSON is taken as YAML is, and what it omits stays", func(t *testing.T) {
		g.apply("", `{"accounts": [{"name": "acme", "decoders": [{"id": "extra", "name": "Extra", "type": "other"}]}]}`)
		acme.get("/iot/decoders").mentions(t, 200, `"extra"`, `"lpp"`)
		g.as("globex-all-0123456").get("/iot/devices").is(t, 200, `{"data": []}`)
	})
}

func testInventoryRefused(t *testing.T, s *site) {
	k := newSink(t, nil)
	g := start(t, s, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox()))
	before := g.declared()
	for _, tc := range []struct{ name, document, path, text string }{
		{"a text where a list belongs", `accounts: nobody`, "accounts", "expected"},
		{"a text where a number belongs", `{"accounts": [{"name": "a", "credit": "many"}]}`, "accounts[0].credit", "expected"},
		{"a number where a text belongs", `{"accounts": [{"name": "a", "tokens": [{"token": ["x"]}]}]}`, "accounts[0].tokens[0].token", "expected"},
		{"an unknown field", `{"accounts": [{"name": "a", "colour": "red"}]}`, "accounts[0].colour", "unknown"},
		{"an unknown scope", `{"accounts": [{"name": "a", "tokens": [{"token": "a-token-0123456789", "scopes": ["everything"]}]}]}`, "accounts[0].tokens[0].scopes[0]", "expected"},
		{"an unknown action", `{"accounts": [{"name": "a", "relays": {"geo": [{"id": "r", "prefix": "1", "action": "pigeon"}]}}]}`, "accounts[0].relays.geo[0].action", "expected black_hole"},
		{"an endpoint missing", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get"}]}}]}`, "accounts[0].relays.vmn[0].parameters", "at least one"},
		{"an endpoint that is no URL", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get", "parameters": ["gopher://x/"]}]}}]}`, "accounts[0].relays.vmn[0].parameters[0]", "http or https URL"},
		{"a placeholder in the host", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get", "parameters": ["http://%orig.example.com/"]}]}}]}`, "accounts[0].relays.vmn[0].parameters[0]", "no placeholder before the path"},
		{"a prefix that another account has", `{"accounts": [{"name": "a", "relays": {"geo": [{"id": "r", "prefix": "4479", "action": "black_hole"}]}}]}`, "accounts[0].relays.geo[0].prefix", "already taken"},
		{"a token that another account has", `{"accounts": [{"name": "a", "tokens": [{"token": "acme-all-0123456"}]}]}`, "accounts[0].tokens[0].token", "already taken"},
		{"a decoder that does not compile", `{"accounts": [{"name": "a", "decoders": [{"id": "d", "name": "d", "type": "other", "codec": "expr", "source": "x = ("}]}]}`, "accounts[0].decoders[0].source", ""},
		{"a mask of a secret that is not known", `{"accounts": [{"name": "a", "tokens": [{"token": "masked:0123456789ab"}]}]}`, "accounts[0].tokens[0].token", "mask"},
		{"nothing", ``, "", "expected an inventory"},
		{"no YAML", "a: [", "", ""},
	} {
		t.Run("refused whole, with the field's path: "+tc.name, func(t *testing.T) {
			// What stands before the mistake is good, and must not be applied either.
			document := tc.document
			if strings.HasPrefix(document, "{") {
				document = `{"sensor_types": [{"id": "premature", "name": "Premature"}],` + document[1:]
			}
			a := g.admin().put("/admin/inventory", document)
			var refusal struct {
				Message string
				Errors  map[string][]string
			}
			if err := json.Unmarshal([]byte(a.body), &refusal); err != nil || a.status != 422 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			texts, ok := refusal.Errors[tc.path]
			if !ok || !strings.Contains(strings.Join(texts, " "), tc.text) || !strings.HasPrefix(refusal.Message, "The inventory was refused: ") {
				t.Errorf("want %q at %q, got %s", tc.text, tc.path, a.body)
			}
			same(t, "the inventory", g.declared(), before)
		})
	}
	t.Run("every mistake of a document is told at once", func(t *testing.T) {
		g.admin().put("/admin/inventory", `{"accounts": [{"name": "", "credit": -1, "permissions": ["all"]}]}`).
			mentions(t, 422, "accounts[0].name", "accounts[0].credit", "accounts[0].permissions[0]")
	})
}

func testPrune(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme, hookOnly := g.as("acme-all-0123456"), g.as("acme-hook-0123456")
	hook(t, hookOnly, "/webhooks/lorawan", `{}`) // remembered from now on
	acme.get("/iot/decoders/torn").mentions(t, 200, "torn")

	leaner := fixture(t, "inventory.yaml", "      - {token: acme-hook-0123456, scopes: [webhook]}\n", "")
	at := strings.Index(leaner, "      - id: torn")
	leaner = leaner[:at] + leaner[strings.Index(leaner, "  - name: globex"):]
	t.Run("without prune what is omitted stays", func(t *testing.T) {
		g.apply("", leaner)
		hook(t, hookOnly, "/webhooks/lorawan", `{}`)
		acme.get("/iot/decoders/torn").mentions(t, 200, "torn")
	})
	t.Run("prune removes it and says so", func(t *testing.T) {
		done := g.apply("?prune=true&allow_removals=100", leaner)
		same(t, "removed", strings.Join(done.Data.Removed, ", "), "account acme: token "+account.HashToken("acme-hook-0123456")[:12]+", account acme: decoder torn")
		acme.get("/iot/decoders/torn").is(t, 404, "")
	})
	t.Run("a token that was removed stops working at once", func(t *testing.T) {
		eventually(t, "401", func() (any, bool) {
			a := hookOnly.post("/webhooks/lorawan", `{}`)
			return a, a.status == 401 && sameBody(a.body, `{"message": "Unauthenticated."}`)
		})
		acme.get("/iot/decoders").mentions(t, 200, "lpp")
	})
	t.Run("an account is never removed, only locked out", func(t *testing.T) {
		only := leaner[:strings.Index(leaner, "  - name: globex")]
		done := g.apply("?prune=true&allow_removals=100", only)
		if len(done.Data.Kept) != 1 || !strings.Contains(done.Data.Kept[0], "globex") {
			t.Errorf("kept: %q", done.Data.Kept)
		}
		eventually(t, "401", func() (any, bool) {
			a := g.as("globex-all-0123456").get("/iot/devices")
			return a, a.status == 401
		})
	})
	t.Run("what is declared again is there again", func(t *testing.T) {
		g.apply("", fixture(t, "inventory.yaml"))
		hook(t, hookOnly, "/webhooks/lorawan", `{}`)
		g.as("globex-all-0123456").get("/iot/decoders").mentions(t, 200, "Globex")
	})
}
