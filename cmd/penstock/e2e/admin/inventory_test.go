package admin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// exportInventory returns the inventory as the admin API exports it.
func exportInventory(g *e2e.Gateway) string {
	g.T.Helper()
	resp := g.Admin().Get("/admin/inventory")
	if resp.Status != 200 {
		g.T.Fatalf("export the inventory: %d %s, want 200", resp.Status, resp.Body)
	}
	return resp.Body
}

func testInventory(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	document := e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox())
	g := e2e.Start(t, s, document)
	acme := g.WithToken("acme-all-0123456")
	oldInventory := exportInventory(g)
	t.Run("the configured file is applied at the start", func(t *testing.T) {
		acme.Get("/iot/devices").Expect(t, 200, `{"data": []}`)
	})
	t.Run("a second apply changes nothing", func(t *testing.T) {
		firstResult, secondResult := g.Apply("", document), g.Apply("", document)
		relaytest.Equal(t, "the account", secondResult.Data.Accounts[0], firstResult.Data.Accounts[0])
		relaytest.Equal(t, "the number of removed and kept records", len(secondResult.Data.Removed)+len(secondResult.Data.Kept), 0)
		relaytest.Equal(t, "the inventory", exportInventory(g), oldInventory)
	})
	t.Run("the exported inventory contains no secret", func(t *testing.T) {
		for _, secret := range []string{"acme-all-0123456", "globex-all-0123456", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"} {
			if strings.Contains(oldInventory, secret) {
				t.Errorf("the exported inventory contains %s:\n%s", secret, oldInventory)
			}
		}
	})
	t.Run("a mask in a document keeps the secret", func(t *testing.T) {
		g.Apply("", oldInventory)
		relaytest.Equal(t, "the inventory", exportInventory(g), oldInventory)
		acme.Get("/iot/devices").Expect(t, 200, `{"data": []}`)
		acme.PostInboundText("i1", "447800055501", "signed")
		if req := sink.Await(t, "/get/447700900123/in", 1); !e2e.SignedBy(req, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") {
			t.Errorf("headers = %v, want a signature with the secret", req.Header)
		}
	})
	changedDocument := strings.Replace(document, `action: black_hole}`, `action: http_get, parameters: ["`+sink.URL+`/changed?m=%m"]}`, 1)
	t.Run("an apply keeps a relay's action", func(t *testing.T) {
		g.Apply("", changedDocument)
		acme.PostInboundText("i2", "447800355501", "for nobody")
		g.AwaitProcessed()
		relaytest.Equal(t, "the number of deliveries", len(g.Deliveries("relay=g-hole")), 0)
	})
	t.Run("a reset of relays sets the action of the document", func(t *testing.T) {
		g.Apply("?reset=relays", changedDocument)
		acme.PostInboundText("i3", "447800355501", "for somebody")
		e2e.SameValues(t, sink.Await(t, "/changed", 1).Query, map[string]string{"m": "for somebody"})
	})
	t.Run("an apply, its dry run and the log name the fields that were changed over REST", func(t *testing.T) {
		e2e.CustomerOf(g).Do("PATCH", "/v2/sms-relay/geo/g-hole", `{"action": "black_hole"}`).Mentions(t, 200)
		for _, flags := range [][]string{{"--dry-run"}, nil} {
			g.RunCommand(changedDocument, append([]string{"apply", "-f", "-"}, flags...)...).Mentions(t, 0,
				"kept     account acme: relays.g-hole.action: kept, changed over the API on ", "; --reset relays takes the document's")
		}
		if log := g.Logs.String(); !strings.Contains(log, "inventory applied; some values are kept") || !strings.Contains(log, "relays.g-hole.parameters: kept, changed over the API on ") {
			t.Errorf("log = %s\nwant the kept fields", g.Logs.Tail(5))
		}
	})
	t.Run("a reset of unknown records is refused", func(t *testing.T) {
		g.Admin().Put("/admin/inventory?reset=relays,weather", changedDocument).Mentions(t, 422, `"reset"`, "must be credit, sims, relays or rules")
	})
	t.Run("an apply keeps a key that was added over REST, and a sensor's slope", func(t *testing.T) {
		g.Apply("", e2e.Fixture(t, "inventory.yaml"))
		acme.Post("/iot/decoders/sent/sensors", `{"sensor_type_id": "temperature", "key": "soil"}`).Mentions(t, 200, "soil")
		acme.Post("/webhooks/generic/bed?decoder_id=sent", `{"soil": 4}`).Mentions(t, 200, `"value":4`)
		sensor := e2e.ReadingsOf(acme.LatestReadings(acme.AwaitDevice("bed")), "soil")[0].SensorID
		acme.Do("PATCH", "/iot/sensors/"+sensor, `{"slope": 10}`).Mentions(t, 200)
		g.Apply("?reset=credit,sims,relays", e2e.Fixture(t, "inventory.yaml"))
		acme.Get("/iot/decoders/sent/sensors").Mentions(t, 200, "soil")
		acme.Post("/webhooks/generic/bed", `{"soil": 4}`).Mentions(t, 200, `"value":40`)
	})
	t.Run("a document may be JSON, and omitted records stay", func(t *testing.T) {
		g.Apply("", `{"accounts": [{"name": "acme", "decoders": [{"id": "extra", "name": "Extra", "type": "other"}]}]}`)
		acme.Get("/iot/decoders").Mentions(t, 200, `"extra"`, `"lpp"`)
		g.WithToken("globex-all-0123456").Get("/iot/devices").Expect(t, 200, `{"data": []}`)
	})
}

func testInventoryRefused(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, s, e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox()))
	oldInventory := exportInventory(g)
	for _, tc := range []struct{ name, document, path, text string }{
		{"a text instead of a list", `accounts: nobody`, "accounts", "expected"},
		{"a text instead of a number", `{"accounts": [{"name": "a", "credit": "many"}]}`, "accounts[0].credit", "expected"},
		{"a list instead of a text", `{"accounts": [{"name": "a", "tokens": [{"token": ["x"]}]}]}`, "accounts[0].tokens[0].token", "expected"},
		{"an unknown field", `{"accounts": [{"name": "a", "colour": "red"}]}`, "accounts[0].colour", "unknown"},
		{"an unknown scope", `{"accounts": [{"name": "a", "tokens": [{"token": "a-token-0123456789", "scopes": ["everything"]}]}]}`, "accounts[0].tokens[0].scopes[0]", "expected"},
		{"an unknown action", `{"accounts": [{"name": "a", "relays": {"geo": [{"id": "r", "prefix": "1", "action": "pigeon"}]}}]}`, "accounts[0].relays.geo[0].action", "expected black_hole"},
		{"a missing endpoint", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get"}]}}]}`, "accounts[0].relays.vmn[0].parameters", "at least one"},
		{"an endpoint that is not a URL", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get", "parameters": ["gopher://x/"]}]}}]}`, "accounts[0].relays.vmn[0].parameters[0]", "http or https URL"},
		{"a placeholder in the host", `{"accounts": [{"name": "a", "relays": {"vmn": [{"id": "r", "number": "12345", "action": "http_get", "parameters": ["http://%orig.example.com/"]}]}}]}`, "accounts[0].relays.vmn[0].parameters[0]", "no placeholder before the path"},
		{"a prefix that another account has", `{"accounts": [{"name": "a", "relays": {"geo": [{"id": "r", "prefix": "4479", "action": "black_hole"}]}}]}`, "accounts[0].relays.geo[0].prefix", "already taken"},
		{"a token that another account has", `{"accounts": [{"name": "a", "tokens": [{"token": "acme-all-0123456"}]}]}`, "accounts[0].tokens[0].token", "already taken"},
		{"a decoder that does not compile", `{"accounts": [{"name": "a", "decoders": [{"id": "d", "name": "d", "type": "other", "codec": "expr", "source": "x = ("}]}]}`, "accounts[0].decoders[0].source", ""},
		{"a mask of an unknown secret", `{"accounts": [{"name": "a", "tokens": [{"token": "masked:0123456789ab"}]}]}`, "accounts[0].tokens[0].token", "mask"},
		{"an empty document", ``, "", "expected an inventory"},
		{"a document that is not YAML", "a: [", "", ""},
	} {
		t.Run("a document is refused with the path of the field: "+tc.name, func(t *testing.T) {
			// The sensor type before the mistake is valid. It must not be applied.
			document := tc.document
			if strings.HasPrefix(document, "{") {
				document = `{"sensor_types": [{"id": "premature", "name": "Premature"}],` + document[1:]
			}
			resp := g.Admin().Put("/admin/inventory", document)
			var refusal struct {
				Message string
				Errors  map[string][]string
			}
			if err := json.Unmarshal([]byte(resp.Body), &refusal); err != nil || resp.Status != 422 {
				t.Fatalf("apply: %d %s, want 422", resp.Status, resp.Body)
			}
			texts, ok := refusal.Errors[tc.path]
			if !ok || !strings.Contains(strings.Join(texts, " "), tc.text) || !strings.HasPrefix(refusal.Message, "The inventory was refused: ") {
				t.Errorf("answer = %[3]s, want %[1]q at %[2]q", tc.text, tc.path, resp.Body)
			}
			relaytest.Equal(t, "the inventory", exportInventory(g), oldInventory)
		})
	}
	t.Run("an answer lists every mistake of a document", func(t *testing.T) {
		g.Admin().Put("/admin/inventory", `{"accounts": [{"name": "", "credit": -1, "permissions": ["all"]}]}`).
			Mentions(t, 422, "accounts[0].name", "accounts[0].credit", "accounts[0].permissions[0]")
	})
}

func testPrune(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme, hookOnly := g.WithToken("acme-all-0123456"), g.WithToken("acme-hook-0123456")
	e2e.PostWebhook(t, hookOnly, "/webhooks/lorawan", `{}`) // the gateway caches the token
	acme.Get("/iot/decoders/torn").Mentions(t, 200, "torn")

	smallerDocument := e2e.Fixture(t, "inventory.yaml", "      - {token: acme-hook-0123456, scopes: [webhook]}\n", "")
	index := strings.Index(smallerDocument, "      - id: torn")
	smallerDocument = smallerDocument[:index] + smallerDocument[strings.Index(smallerDocument, "  - name: globex"):]
	t.Run("without prune, omitted records stay", func(t *testing.T) {
		g.Apply("", smallerDocument)
		e2e.PostWebhook(t, hookOnly, "/webhooks/lorawan", `{}`)
		acme.Get("/iot/decoders/torn").Mentions(t, 200, "torn")
	})
	t.Run("prune removes and lists omitted records", func(t *testing.T) {
		result := g.Apply("?prune=true&allow_removals=100", smallerDocument)
		relaytest.Equal(t, "removed", strings.Join(result.Data.Removed, ", "), "account acme: token "+account.HashToken("acme-hook-0123456")[:12]+", account acme: decoder torn")
		acme.Get("/iot/decoders/torn").Expect(t, 404, "")
	})
	t.Run("a removed token is refused at once", func(t *testing.T) {
		relaytest.Eventually(t, "401", func() (any, bool) {
			resp := hookOnly.Post("/webhooks/lorawan", `{}`)
			return resp, resp.Status == 401 && e2e.SameBody(resp.Body, `{"message": "Unauthenticated."}`)
		})
		acme.Get("/iot/decoders").Mentions(t, 200, "lpp")
	})
	t.Run("prune keeps an account without its tokens", func(t *testing.T) {
		withoutGlobex := smallerDocument[:strings.Index(smallerDocument, "  - name: globex")]
		result := g.Apply("?prune=true&allow_removals=100", withoutGlobex)
		if len(result.Data.Kept) != 1 || !strings.Contains(result.Data.Kept[0], "globex") {
			t.Errorf("kept records = %q, want the account globex", result.Data.Kept)
		}
		relaytest.Eventually(t, "401", func() (any, bool) {
			resp := g.WithToken("globex-all-0123456").Get("/iot/devices")
			return resp, resp.Status == 401
		})
	})
	t.Run("a token is accepted after it is declared again", func(t *testing.T) {
		g.Apply("", e2e.Fixture(t, "inventory.yaml"))
		e2e.PostWebhook(t, hookOnly, "/webhooks/lorawan", `{}`)
		g.WithToken("globex-all-0123456").Get("/iot/decoders").Mentions(t, 200, "Globex")
	})
}
