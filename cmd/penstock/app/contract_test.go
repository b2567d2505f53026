package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
)

// examiner compares everything that goes over a gateway's wire with the contract
// that the gateway itself serves. It stands in the place of the transport.
type examiner struct {
	next    http.RoundTripper
	mu      sync.Mutex
	checker *contracttest.Checker
	found   []string
}

// RoundTrip sends a request and compares it and its answer.
func (x *examiner) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	resp, err := x.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(got))
	if zip, bad := gzip.NewReader(bytes.NewReader(sent)); bad == nil && r.Header.Get("Content-Encoding") == "gzip" {
		sent, _ = io.ReadAll(io.LimitReader(zip, 1<<20))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found = append(x.found, x.checker.Check(contracttest.Exchange{
		Method: r.Method, Target: r.URL.RequestURI(), Request: r.Header, RequestBody: sent,
		Status: resp.StatusCode, Answer: resp.Header, AnswerBody: got,
	})...)
	return resp, err
}

// examine holds a gateway's traffic to a contract from here on.
func (g *gateway) examine(c *contracttest.Checker) {
	x := &examiner{next: g.web.Transport, checker: c}
	g.web.Transport = x
	g.t.Cleanup(func() {
		for _, difference := range slices.Compact(slices.Sorted(slices.Values(x.found))) {
			g.t.Error(difference)
		}
	})
}

// TestRoutesAreTheContractsOperations looks at the app as it is put together.
func TestRoutesAreTheContractsOperations(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, fixture(t, "contract.yaml"))
	cfg, err := config.Load("", g.env)
	must(t, err)
	d, err := Open(context.Background(), cfg, slog.New(slog.NewTextHandler(g.logs, nil)), "test")
	must(t, err)
	defer func() { must(t, d.close(context.Background())) }()
	for _, difference := range contracttest.Routes(d.app, contract(t)) {
		t.Error(difference)
	}
}

// send posts a sample as a caller, with further headers: name, value, …
func (s sample) send(c caller, headers ...string) answer {
	c.g.t.Helper()
	c = c.with("Content-Type", s.kind)
	for pair := range slices.Chunk(headers, 2) {
		c = c.with(pair[0], pair[1])
	}
	fresh := strings.NewReplacer("NEW", relay.NewID(time.Now()))
	return c.do(s.method, fresh.Replace(s.target), fresh.Replace(s.body))
}

// owner returns a caller that may send a sample, and another known one that may not.
func (s sample) owner(g *gateway) (owner, other caller) {
	if strings.HasPrefix(s.target, "/admin") {
		return g.admin(), g.signedIn("viewer-of-acme")
	}
	if strings.HasPrefix(s.target, "/v2") || strings.HasPrefix(s.target, "/v3") {
		return g.as("").with("X-Auth-Token", "acme-all-0123456"), g.as("").with("X-Auth-Token", "acme-hook-0123456")
	}
	if strings.HasPrefix(s.target, "/iot") || strings.HasPrefix(s.target, "/ledgers") {
		return g.as("acme-all-0123456"), g.as("acme-hook-0123456")
	}
	return g.as("acme-all-0123456"), g.as("acme-customer-0123456")
}

// TestTrafficKeepsTheContract drives every operation to every answer that the
// contract names, and compares what goes over the wire.
func TestTrafficKeepsTheContract(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	checker := contracttest.New(doc)
	onOneAndOnThree(t, func(t *testing.T, s *site) {
		g := start(t, s, fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true", "PENSTOCK_TRUSTED_PROXIES=127.0.0.0/8")
		g.examine(checker)
		all := samples(g.inhabit())
		for _, s := range all {
			owner, _ := s.owner(g)
			if a := s.send(owner); a.status > 299 && (a.status != 302 || s.operation != "followToken") {
				t.Errorf("%s: %d %s", a.of, a.status, a.body)
			}
		}
		g.omissions(doc, all)
		tooLarge := zipped(t, io.LimitReader(blanks{}, 9<<20))
		for n, s := range all {
			g.refusals(doc, s, tooLarge, fmt.Sprintf("198.51.%d.%d", n/250, n%250))
		}
		g.mistakes()
		g.sessions()
		g.aftermath()
	})
	t.Run("while the database is down and the journal is full", func(t *testing.T) { testContractOutage(t, doc, checker) })
	t.Run("with a provider", func(t *testing.T) { testContractProvider(t, checker) })
	t.Run("after the database was lost", func(t *testing.T) { testContractRecover(t, checker) })
	missing := slices.DeleteFunc(checker.Unseen(), func(name string) bool {
		return name == "putInventory 409" || // ten gateways would have to race; the table of errors of ingest/admin holds it
			name == "downloadCallRecords 202" || // the archive may be made at once; ingest/restv2 holds it
			name == "streamCDR 422" // so may the file; ingest/restv3 holds it
	})
	for _, name := range missing {
		t.Errorf("no request was answered as documented: %s", name)
	}
	requiresWhatIsThere(t, checker)
	keepExamples(t, doc, checker.Examples())
}

var recordExamples = flag.Bool("examples", false, "write the examples of the API documentation from the traffic of TestTrafficKeepsTheContract")

// keepExamples wants the document to have an example of each body that went over the wire.
// With -examples it writes them instead.
func keepExamples(t *testing.T, doc *openapi3.T, seen contracttest.Examples) {
	t.Helper()
	if *recordExamples {
		encoded, err := json.MarshalIndent(seen, "", " ")
		must(t, err)
		must(t, os.WriteFile(filepath.Join("..", "..", "..", "ingest", "openapi", "examples.json"), append(encoded, '\n'), 0o644))
		return
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			e := seen[op.OperationID]
			if e == nil {
				continue
			}
			for kind := range e.Requests {
				if op.RequestBody.Value.Content[kind].Example == nil {
					t.Errorf("%s has no example of its body in %s: run make golden", op.OperationID, kind)
				}
			}
			for status, answers := range e.Answers {
				for kind := range answers {
					if op.Responses.Value(status).Value.Content[kind].Example == nil {
						t.Errorf("%s has no example of its answer %s in %s: run make golden", op.OperationID, status, kind)
					}
				}
			}
		}
	}
}

// residents are the ids of what inhabit makes.
type residents struct {
	device, spare, sensor, message, archive, node string
	asset                                         asset
	sims                                          simResidents
	pending                                       string // the id of a pending message
	usage                                         usageResidents
	rules                                         ruleResidents
	leaver                                        string // a user
	revoked                                       string // a token's id
}

// inhabit makes a device with readings, a message in an inbox and a token.
func (g *gateway) inhabit() residents {
	g.t.Helper()
	acme := g.as("acme-all-0123456")
	acme.post("/webhooks/generic?decoder_id=sent", `[{"id":"shed","temperature":5},{"id":"shed","door":"ajar"}]`).mentions(g.t, 200, "ajar")
	acme.post("/webhooks/generic?decoder_id=sent", `{"id":"spare","temperature":5}`).mentions(g.t, 200, "temperature")
	acme.post("/webhooks/lorawan?decoder_id=lpp&event=up", fixture(g.t, "chirpstack/up.json")).is(g.t, 200, "")
	acme.post("/inbound/sms/json", `{"id":"desk-1","from":"447700900123","to":"447860000002","text":"hi"}`).mentions(g.t, 200, "id")
	g.settled()
	device := acme.device("shed")
	list := acme.latest(device)
	var inbox struct{ Data []struct{ ID string } }
	acme.with("X-Auth-Token", "acme-all-0123456").get("/v2/sms-relay/vmn/desk/inbox").into(g.t, &inbox)
	if len(list) != 2 || len(inbox.Data) != 1 {
		g.t.Fatalf("the device has %d readings, the inbox %d messages", len(list), len(inbox.Data))
	}
	acme.do("PATCH", "/iot/devices/"+device, `{"frame_logging":"enabled"}`).mentions(g.t, 200, "enabled")
	acme.post("/webhooks/generic", `{"id":"shed","temperature":6}`).mentions(g.t, 200, "temperature")
	return residents{device, acme.device("spare"), list[0].SensorID, inbox.Data[0].ID, g.archived(), g.registered(), g.mint(), g.enlistSIMs(), g.pending(), g.meter(), g.legislate(), g.employ(), g.addToken("iot").Data.ID}
}

// registered is the gateway's node, once it has registered.
func (g *gateway) registered() (node string) {
	g.t.Helper()
	eventually(g.t, "the gateway is registered", func() (any, bool) {
		var list struct{ Data []struct{ Node string } }
		a := g.admin().get("/admin/gateways")
		a.into(g.t, &list)
		if len(list.Data) > 0 {
			node = list.Data[0].Node
		}
		return a, node != ""
	})
	return node
}

// archived has an archive made.
func (g *gateway) archived() string {
	g.t.Helper()
	acme := g.as("").with("X-Auth-Token", "acme-all-0123456")
	var made struct{ Data struct{ Handle string } }
	acme.post("/v2/sip/cdr/request", `{"from_date":"2026-11-01","to_date":"2026-11-30"}`).into(g.t, &made)
	eventually(g.t, "the archive is made", func() (any, bool) {
		a := acme.get("/v2/sip/cdr/" + made.Data.Handle + "/download")
		return a, a.status == 200
	})
	return made.Data.Handle
}

// refusals are what every operation answers alike, where the contract names it.
func (g *gateway) refusals(doc *openapi3.T, s sample, tooLarge, from string) {
	g.t.Helper()
	owner, other := s.owner(g)
	documents := func(status string) bool { return operation(doc, s.operation).Responses.Value(status) != nil }
	want := func(status int, a answer) {
		g.t.Helper()
		if a.status != status {
			g.t.Errorf("%s: %d %s, want %d", a.of, a.status, a.body, status)
		}
	}
	if documents("401") {
		for _, token := range []string{"", "nobody"} { // from another address each time, or guessing would be limited
			want(401, s.send(g.as(token).with("X-Forwarded-For", from)))
		}
	}
	if documents("403") && !openToAccounts(s.operation) {
		want(403, s.send(other))
	}
	if !documents("413") {
		return
	}
	s.kind = "application/json"
	s.body = "no gzip"
	want(400, s.send(owner, "Content-Encoding", "gzip"))
	want(415, s.send(owner, "Content-Encoding", "br"))
	s.body = tooLarge
	want(413, s.send(owner, "Content-Encoding", "gzip"))
	if !strings.HasPrefix(s.operation, "kannel") && s.operation != "putInventory" {
		s.body = "{"
		want(422, s.send(owner))
	}
}

// aftermath lists what all this led to, page by page.
func (g *gateway) aftermath() {
	g.t.Helper()
	g.settled()
	g.reachAny("g1", "retrying")
	g.reachAny("g2", "simulated")
	for _, file := range []string{"/console", "/console/style.css", "/console/core/dom.js"} {
		g.as("").with("If-None-Match", "*").get(file).is(g.t, 304, "")
	}
	for _, list := range []string{"/admin/events?limit=20", "/admin/deliveries?limit=2"} {
		pages, cursor := 0, ""
		for more := true; more; more = cursor != "" {
			var page struct{ Meta struct{ Next string } }
			g.admin().get(list+cursor).into(g.t, &page)
			if cursor = page.Meta.Next; cursor != "" {
				cursor = "&cursor=" + cursor
			}
			pages++
		}
		if pages < 2 {
			g.t.Errorf("%s has one page only", list)
		}
	}
	g.admin().post("/admin/deliveries/replay", `{"relay":"g1"}`).mentions(g.t, 200, "count")
	g.admin().put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"globex"}]}`).mentions(g.t, 200, "account acme: decoder lpp", "account acme: it may hold")
}

// reachAny waits until one of a relay's deliveries is in a state.
func (g *gateway) reachAny(relay, state string) {
	g.t.Helper()
	eventually(g.t, "a delivery of "+relay+" is "+state, func() (any, bool) {
		found := g.deliveries("relay=" + relay)
		return found, slices.ContainsFunc(found, func(p parcel) bool { return p.State == state })
	})
}
