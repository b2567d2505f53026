package openapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/console"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

func TestMergedDocumentIsStrict(t *testing.T) {
	for _, problem := range contracttest.Strict(merged(t)) {
		t.Error(problem)
	}
}

// merged returns the document that the gateway serves.
func merged(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi.Merge(restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(),
		soap.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI())
	relaytest.NoError(t, err)
	return doc
}

// Every example matches its schema, and the merged document is valid.
func TestExamplesMatchTheirSchemas(t *testing.T) {
	doc := merged(t)
	encoded, err := doc.MarshalJSON()
	relaytest.NoError(t, err)
	if _, err := openapi.Load(encoded); err != nil {
		t.Errorf("an example is outdated; run make golden: %v", err)
	}
}

// accountSurfaces returns the documents of the APIs for accounts.
func accountSurfaces() [][]byte {
	return [][]byte{restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI()}
}

func TestOperationsAreThoseOfTheParsedDocuments(t *testing.T) {
	var want []httpd.Operation
	for _, document := range append(accountSurfaces(), admin.OpenAPI()) {
		doc, err := openapi.Load(document)
		relaytest.NoError(t, err)
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				want = append(want, httpd.Operation{Method: method, Path: strings.NewReplacer("{", ":", "}", "").Replace(path), ID: op.OperationID, Summary: op.Summary})
			}
		}
	}
	got := openapi.Operations(append(accountSurfaces(), admin.OpenAPI())...)
	byID := func(a, b httpd.Operation) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(want, byID)
	slices.SortFunc(got, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the operations (-parsed, +read):\n%s", diff)
	}
	for _, o := range got { // the audit log shows the summary
		if o.Summary == "" {
			t.Errorf("%s has no summary", o.ID)
		}
	}
}

// Every role may read, and admins and operators may change records, with the exceptions below.
func TestWhoMayUseAnOperationAsAnAccount(t *testing.T) {
	exceptions := map[string]string{
		"lookUpNumber": "ao", "readInbox": "aoc", "listRules": "aoc", "getRule": "aoc",
		"tryRule": "aoc", "previewMessage": "aoc", "validateToken": "aoc",
	}
	auth := httpd.NewAuth(httpd.AuthDeps{Operations: openapi.Operations(accountSurfaces()...), Now: time.Now})
	letters := map[user.Role]string{user.Admin: "a", user.Operator: "o", user.Viewer: "v", user.Account: "c"}
	for _, o := range auth.Operations {
		want := "ao"
		if o.Method == http.MethodGet {
			want = "aovc"
		}
		if exception, ok := exceptions[o.ID]; ok {
			want = exception
		}
		got := ""
		for _, role := range []user.Role{user.Admin, user.Operator, user.Viewer, user.Account} {
			if slices.Contains(auth.OperationsOf(role), o.ID) {
				got += letters[role]
			}
		}
		relaytest.Equal(t, "the roles that may use "+o.ID, got, want)
		delete(exceptions, o.ID)
	}
	relaytest.Equal(t, "the exceptions without an operation", len(exceptions), 0)
}
