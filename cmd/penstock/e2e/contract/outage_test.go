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

// located is an operation with its method and its path; the path has parameters in braces.
type located struct {
	*openapi3.Operation
	method, path string
}

// operations returns the operations of a contract.
func operations(doc *openapi3.T) iter.Seq[located] {
	return func(yield func(located) bool) {
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if !yield(located{op, method, path}) {
					return
				}
			}
		}
	}
}

// operation returns the operation with an id, or the zero value.
func operation(doc *openapi3.T, id string) (found located) {
	for op := range operations(doc) {
		if op.OperationID == id {
			return op
		}
	}
	return found
}

// testContractOutage checks every operation's answer while nothing can be stored: the database
// and Redis are stopped, and each journal is full of entries that wait for the database.
func testContractOutage(t *testing.T, doc *openapi3.T, checker *contracttest.Checker) {
	server, queue := dbtest.StartPostgres(t), redistest.Start(t)
	// Callbacks fail at once: the outcome of an attempt under way could not be saved.
	inventory := e2e.Fixture(t, "contract.yaml", "https://example.com/callback", "http://127.0.0.1:9/callback")
	g := e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_DATABASE_URL="+server.NewDatabase(t), "PENSTOCK_REDIS_URL="+queue.URL, "PENSTOCK_JOURNAL_MAX_BYTES=1MiB",
		"PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	checkTraffic(g, checker)
	ids := fillWithSamples(g)
	signedIn := g.SignedIn("viewer-of-acme")
	server.Kill()
	queue.Stop()
	g.UnsavedOutcomes = true
	large := padded(200 << 10)
	for target, body := range map[string]string{
		"/webhooks/lorawan": `{"deviceId":"shed"`,
		"/inbound/sms/json": `{"id":"desk-2","from":"447700900123","to":"447860000002","text":"hi"`,
		"/inbound/dlr/json": `{"ref":"1-77-0","state":"DELIVRD"`,
		"/inbound/cdr/sip":  `{"id":"NEW","start":"2026-11-20T09:34:15Z","end":"2026-11-20T09:35:12Z","from":"447700900123","to":"447860000001"`,
	} {
		for _, padding := range []int{40 << 10, 2 << 10, 1} {
			relaytest.Eventually(t, "the journal is full: "+target, func() (any, bool) {
				a := g.As("acme-all-0123456").Post(target, body+`,"note":"`+strings.Repeat("x", padding)+`"}`)
				return a, a.Status == 503
			})
		}
	}
	for _, s := range append(samples(ids), sample{"recover", "POST", "/admin/recover", "", ""}) {
		want := 503
		if strings.HasPrefix(s.target, "/v3/") {
			want = 424
		}
		if operation(doc, s.operation).Responses.Value(strconv.Itoa(want)) == nil || s.operation == "tryDecoder" && strings.Contains(s.body, `"codec"`) {
			continue // decoding with a given source needs no records
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
		owner, _ := s.owner(g)
		a := s.send(owner)
		for range 20 { // posts that are smaller than those above may still fit into the journal
			if a.Status == want || !strings.HasPrefix(s.target, "/inbound") {
				break
			}
			a = s.send(owner)
		}
		if a.Status != want {
			t.Errorf("%s: %d %s, want %d", a.Request, a.Status, a.Body, want)
		}
	}
	sessionsInOutage(t, signedIn)
}

// sessionsInOutage checks the answers to a user while the database is down.
func sessionsInOutage(t *testing.T, who e2e.Client) {
	for _, s := range []sample{
		{"", "GET", "/admin/session", "", ""}, {"", "DELETE", "/admin/session", "", ""},
		{"", "PUT", "/admin/session/password", "application/json", `{"password":"a","new_password":"b"}`},
		{"", "POST", "/admin/session", "application/json", `{"name":"anna","password":"` + e2e.UserPassword + `"}`},
	} {
		if a := s.send(who); a.Status != 503 {
			t.Errorf("%s: %d %s, want 503", a.Request, a.Status, a.Body)
		}
	}
}

// testContractRecover recovers a gateway whose database was deleted.
func testContractRecover(t *testing.T, checker *contracttest.Checker) {
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	checkTraffic(g, checker)
	g.As("acme-all-0123456").Post("/inbound/sms/json", `{"id":"desk-1","from":"447700900123","to":"447860000002","text":"hi"}`).Mentions(t, 200, "id")
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
	g.As("").Get("/readyz").Mentions(t, 503, "penstock recover")
	g.As("").Post("/admin/recover", "").Mentions(t, 401, "Unauthenticated")
	g.Admin().Post("/admin/recover", "").Mentions(t, 200, `"count":1,"unknown":0,"missing":{"since":"the beginning"`)
	g.AwaitProcessed()
	e2e.CustomerOf(g).Get("/v2/sms-relay/vmn/desk/inbox").Mentions(t, 200, "447700900123")
	g.As("").Get("/readyz").Mentions(t, 200, "ready")
}

// padded returns a frame of at least n bytes.
func padded(n int) string { return `{"deviceId":"shed","note":"` + strings.Repeat("x", n) + `"}` }
