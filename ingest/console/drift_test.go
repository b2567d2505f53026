package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/relay/relaytest"
)

// constant reads a constant of the script whose value is JSON.
func constant(t *testing.T, name string, into any) {
	t.Helper()
	found := regexp.MustCompile(`(?s)\nexport const ` + name + ` = (\{.*?\n\});\n`).FindSubmatch(ours(".js"))
	if found == nil {
		t.Fatalf("the script has no %s", name)
	}
	if err := json.Unmarshal(found[1], into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// operations are those of the gateway that the page may ask for, by their id.
func operations(t *testing.T) (list map[string]*openapi3.Operation, at map[string]string) {
	t.Helper()
	doc, err := openapi.Merge(admin.OpenAPI(), OpenAPI(), iotapi.OpenAPI(), restv2.OpenAPI(), restv3.OpenAPI(), ledgerapi.OpenAPI())
	relaytest.NoError(t, err)
	list, at = map[string]*openapi3.Operation{}, map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			list[op.OperationID], at[op.OperationID] = op, method+" "+path
		}
	}
	return list, at
}

func TestEveryOperationOfThePageIsInTheContract(t *testing.T) {
	var api map[string]string
	constant(t, "api", &api)
	_, at := operations(t)
	for id, want := range api {
		if at[id] != want {
			t.Errorf("the page asks %s at %q, the contract has %q", id, want, at[id])
		}
		if n := strings.Count(string(ours(".js")), `"`+id+`"`); n < 2 {
			t.Errorf("the page never asks for %s", id)
		}
	}
	for _, path := range regexp.MustCompile(`["'\x60]([A-Z]+ )?/(?:admin|iot|v2|v3|ledgers|readyz|metrics|healthz)\b[^"'\x60]*["'\x60]`).FindAllString(string(ours(".js")), -1) {
		path = strings.Trim(path, "\"'`")
		if path == "/admin" || path == "/readyz" { // what takes the token
			continue
		}
		if !slices.Contains(slices.Collect(maps.Values(api)), path) {
			t.Errorf("the script names %s outside its table", path)
		}
	}
	for _, asked := range regexp.MustCompile(`\b(?:call\(|op: )"(\w+)"`).FindAllStringSubmatch(string(ours(".js")), -1) {
		if _, known := api[asked[1]]; !known {
			t.Errorf("the script calls %s, which its table lacks", asked[1])
		}
	}
}

// A filter that the API knows and the page does not would be missed by nobody but
// the operator; so both ways are compared.
func TestFiltersAreParametersOfTheContract(t *testing.T) {
	var filters map[string]map[string]any
	constant(t, "filters", &filters)
	list, _ := operations(t)
	for id, fields := range filters {
		parameters := map[string]*openapi3.Schema{}
		for _, ref := range list[id].Parameters {
			if name := ref.Value.Name; name != "limit" && name != "cursor" && name != "search_ms" {
				parameters[name] = ref.Value.Schema.Value
			}
		}
		for name, field := range fields {
			schema := parameters[name]
			if schema == nil {
				t.Errorf("%s: the page filters by %s, the contract does not", id, name)
				continue
			}
			delete(parameters, name)
			if got, want := fmt.Sprint(field), fmt.Sprint(schema.Enum); len(schema.Enum) > 0 && got != want {
				t.Errorf("%s: %s is one of %s on the page, of %s in the contract", id, name, got, want)
			}
			if field == "number" != schema.Type.Is("integer") {
				t.Errorf("%s: %s is a %v on the page", id, name, field)
			}
		}
		for name := range parameters {
			t.Errorf("%s: the page has no filter %s", id, name)
		}
	}
}
