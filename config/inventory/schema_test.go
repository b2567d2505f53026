package inventory_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay/relaytest"
)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc := relaytest.Must(jsonschema.UnmarshalJSON(bytes.NewReader(relaytest.Must(inventory.Schema())(t))))(t)
	c := jsonschema.NewCompiler()
	relaytest.NoError(t, c.AddResource("inventory.json", doc))
	return relaytest.Must(c.Compile("inventory.json"))(t)
}

// validate validates a YAML document against the schema.
func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var fromYAML any
	relaytest.NoError(t, yaml.Unmarshal([]byte(text), &fromYAML))
	raw := relaytest.Must(json.Marshal(fromYAML))(t)
	value := relaytest.Must(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(t)
	return s.Validate(value)
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(relaytest.Must(os.ReadFile(path))(t))
}

func TestSchemaAcceptsValidDocuments(t *testing.T) {
	_, page, _ := strings.Cut(read(t, "../../docs/inventory.md"), "```yaml\n")
	page, _, _ = strings.Cut(page, "```")
	exported := relaytest.Must(inventory.EncodeYAML(inventory.Mask(contract(t)), "exported"))(t)
	demo := encode(t, inventory.Demo("random-token-0123456"))
	s := schema(t)
	for name, text := range map[string]string{
		"the contract's inventory": read(t, "testdata/contract.yaml"), "the example": read(t, "../../deploy/inventory.example.yaml"),
		"the documentation's example": page, "an export": string(exported), "the demo": demo,
		"one secret without a list":      accountWith("webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
		"numbers without quotes":         accountWith(`relays: {vmn: [{id: v, number: 447860000009, action: inactive}]}`),
		"the default name of a document": "document: default",
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, s, text); err != nil {
				t.Error(err)
			}
			var known inventory.Document // has the secrets that an export masks
			if name == "an export" {
				known = contract(t)
			}
			if _, err := inventory.Parse([]byte(text), inventory.Options{Load: earlier(known)}); err != nil {
				t.Errorf("Parse: %v", err)
			}
		})
	}
}

func TestSchemaRefusesInvalidDocuments(t *testing.T) {
	s := schema(t)
	for name, text := range map[string]string{
		"an unknown section":                "acounts: []",
		"an unknown field":                  accountWith("credt: 1"),
		"a name of two words":               "document: site a",
		"an account without a name":         "accounts: [{credit: 1}]",
		"credit in words":                   accountWith("credit: many"),
		"negative credit":                   accountWith("credit: -1"),
		"an unknown permission":             accountWith("permissions: [all]"),
		"a short token":                     accountWith("tokens: [{token: short}]"),
		"an unknown scope":                  accountWith("tokens: [{token: a-token-0123456789, scopes: [everything]}]"),
		"a webhook secret in another form":  accountWith("webhook_secret: hunter2"),
		"a prefix of letters":               accountWith("relays: {geo: [{id: g, prefix: abc, action: black_hole}]}"),
		"an unknown action":                 accountWith("relays: {vmn: [{id: v, number: 447860000001, action: pigeon}]}"),
		"an action of the other kind":       accountWith("relays: {geo: [{id: g, prefix: 447, action: inactive}]}"),
		"a decoder without a type":          accountWith("decoders: [{id: d, name: D}]"),
		"an unknown codec":                  accountWith("decoders: [{id: d, name: D, type: other, codec: morse}]"),
		"a repeat in words":                 accountWith("rules: [{id: r, name: R, on: reading, repeat: often, actions: [{action: email, parameters: [a@example.com]}]}]"),
		"a duration in words":               accountWith("ledgers: [{id: l, name: L, expiry: long}]"),
		"negative claims":                   accountWith("ledgers: [{id: l, name: L, claims: -1}]"),
		"a short ICCID":                     accountWith("sims: [{iccid: '8944'}]"),
		"a PIN of letters":                  accountWith("sims: [{iccid: '8944000000000000001', pin: abcd}]"),
		"an unknown state":                  accountWith("sims: [{iccid: '8944000000000000001', current_state: lost}]"),
		"a trunk without an address":        accountWith("sip: {trunks: [{source_ips: []}]}"),
		"a host name instead of an address": accountWith("sip: {trunks: [{source_ips: [example.com]}]}"),
		"a list instead of an account":      "accounts: [[]]",
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, s, text); err == nil {
				t.Error("the schema accepts the document")
			}
			if _, err := inventory.Parse([]byte(text), inventory.Options{}); err == nil {
				t.Error("Parse accepts the document")
			}
		})
	}
}

func TestEveryFieldHasAMeaning(t *testing.T) {
	table := inventory.FieldTable()
	for line := range strings.Lines(table) {
		if strings.HasSuffix(line, "|  |\n") || strings.HasSuffix(line, ":  |\n") {
			t.Errorf("a field without a meaning: %s", line)
		}
	}
	if fields, meanings := strings.Count(table, "\n")-2, strings.Count(read(t, "fields.txt"), "\n"); fields != meanings {
		t.Errorf("%d fields and %d lines in fields.txt", fields, meanings)
	}
}

func TestTheExampleShowsEveryField(t *testing.T) {
	example := read(t, "../../deploy/inventory.example.yaml")
	for line := range strings.Lines(inventory.FieldTable()) {
		_, path, isField := strings.Cut(line, "| `")
		if !isField {
			continue
		}
		path, _, _ = strings.Cut(path, "`")
		name := path[strings.LastIndex(path, ".")+1:]
		if !strings.Contains(example, name+":") {
			t.Errorf("the example does not show %s", path)
		}
	}
}
