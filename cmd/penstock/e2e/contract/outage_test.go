package contract

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/console"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// contract returns the document that the gateway serves.
func contract(t *testing.T) *openapi3.T {
	t.Helper()
	return relaytest.Must(openapi.Merge(restv2.OpenAPI(), soap.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI()))(t)
}

// locatedOperation is an operation with its method and its path. The path has parameters in braces.
type locatedOperation struct {
	*openapi3.Operation
	method, path string
}

// operations returns the operations of a contract.
func operations(doc *openapi3.T) iter.Seq[locatedOperation] {
	return func(yield func(locatedOperation) bool) {
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if !yield(locatedOperation{op, method, path}) {
					return
				}
			}
		}
	}
}

// operation returns the operation with an id, or the zero value.
func operation(doc *openapi3.T, id string) (found locatedOperation) {
	for op := range operations(doc) {
		if op.OperationID == id {
			return op
		}
	}
	return found
}

// testContractOutage checks the answer of every operation while nothing can be stored: PostgreSQL and
// Redis are stopped, and each journal is full of entries that wait for the database.
func testContractOutage(t *testing.T, doc *openapi3.T, checker *contracttest.Checker) {
	server, redisServer := dbtest.StartPostgres(t), redistest.Start(t)
	// Callbacks fail at once, because the outcome of an attempt in flight could not be saved.
	inventory := e2e.Fixture(t, "contract.yaml", "https://example.com/callback", "http://127.0.0.1:9/callback")
	g := e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_DATABASE_URL="+server.NewDatabase(t), "PENSTOCK_REDIS_URL="+redisServer.URL, "PENSTOCK_JOURNAL_MAX_BYTES=1MiB",
		"PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	checkTraffic(g, checker)
	ids := fillWithSamples(g)
	viewer := g.SignedIn("viewer-of-acme")
	server.Kill()
	redisServer.Stop()
	g.UnsavedOutcomes = true
	large := frameOfSize(200 << 10)
	for target, body := range map[string]string{
		"/webhooks/lorawan": `{"deviceId":"shed"`,
		"/inbound/sms/json": `{"id":"desk-2","from":"447700900123","to":"447860000002","text":"hi"`,
		"/inbound/dlr/json": `{"ref":"1-77-0","state":"DELIVRD"`,
		"/inbound/cdr/sip":  `{"id":"NEW","start":"2026-11-20T09:34:15Z","end":"2026-11-20T09:35:12Z","from":"447700900123","to":"447860000001"`,
	} {
		for _, padding := range []int{40 << 10, 2 << 10, 1} {
			relaytest.Eventually(t, "the journal is full: "+target, func() (any, bool) {
				resp := g.WithToken("acme-all-0123456").Post(target, body+`,"note":"`+strings.Repeat("x", padding)+`"}`)
				return resp, resp.Status == 503
			})
		}
	}
	for _, s := range append(samples(ids), sample{"recover", "POST", "/admin/recover", "", ""}) {
		want := 503
		if strings.HasPrefix(s.target, "/v3/") {
			want = 424
		}
		if operation(doc, s.operation).Responses.Value(strconv.Itoa(want)) == nil || s.operation == "tryDecoder" && strings.Contains(s.body, `"codec"`) {
			continue // decoding with the codec of the request needs no records
		}
		if s.operation == "listEvents" && !strings.Contains(s.target, "state=") {
			want = 200 // from the journal, with meta.stale
		}
		if s.operation == "showSession" {
			continue // a session of the admin token needs no records
		}
		if strings.HasPrefix(s.target, "/webhooks") {
			s.body = large
		}
		owner, _ := s.clients(g)
		resp := s.send(owner)
		for range 20 { // the journal may still have room for small posts
			if resp.Status == want || !strings.HasPrefix(s.target, "/inbound") {
				break
			}
			resp = s.send(owner)
		}
		if resp.Status != want {
			t.Errorf("%s: %d %s, want %d", resp.Request, resp.Status, resp.Body, want)
		}
	}
	checkSessionsInOutage(t, viewer)
}

// checkSessionsInOutage checks the answers to a user while the database is down.
func checkSessionsInOutage(t *testing.T, viewer e2e.Client) {
	for _, s := range []sample{
		{"", "GET", "/admin/session", "", ""}, {"", "DELETE", "/admin/session", "", ""},
		{"", "PUT", "/admin/session/password", "application/json", `{"password":"a","new_password":"b"}`},
		{"", "POST", "/admin/session", "application/json", `{"name":"anna","password":"` + e2e.UserPassword + `"}`},
	} {
		if resp := s.send(viewer); resp.Status != 503 {
			t.Errorf("%s: %d %s, want 503", resp.Request, resp.Status, resp.Body)
		}
	}
}

// testContractRecover recovers a gateway whose database was deleted.
func testContractRecover(t *testing.T, checker *contracttest.Checker) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	checkTraffic(g, checker)
	g.WithToken("acme-all-0123456").Post("/inbound/sms/json", `{"id":"desk-1","from":"447700900123","to":"447860000002","text":"hi"}`).Mentions(t, 200, "id")
	g.AwaitProcessed()
	g.AwaitNode()
	relaytest.NoError(t, g.Stop())
	for _, name := range []string{"penstock.db", "penstock.db-wal", "penstock.db-shm"} {
		if err := os.Remove(filepath.Join(g.DataDir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	g.RunTool("migrate").Mentions(t, "applied") // an empty database
	g.Run()
	g.WithToken("").Get("/readyz").Mentions(t, 503, "penstock recover")
	g.WithToken("").Post("/admin/recover", "").Mentions(t, 401, "Unauthenticated")
	g.Admin().Post("/admin/recover", "").Mentions(t, 200, `"count":1,"unknown":0,"missing":{"since":"the beginning"`)
	g.AwaitProcessed()
	e2e.CustomerOf(g).Get("/v2/sms-relay/vmn/desk/inbox").Mentions(t, 200, "447700900123")
	g.WithToken("").Get("/readyz").Mentions(t, 200, "ready")
}

// frameOfSize returns a frame of at least n bytes.
func frameOfSize(n int) string { return `{"deviceId":"shed","note":"` + strings.Repeat("x", n) + `"}` }
