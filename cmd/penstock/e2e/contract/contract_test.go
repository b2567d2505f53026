// Package contract tests every operation of the API contract end to end: the documented answers, the
// isolation of accounts, and hostile values.
package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs the suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"hostile bodies": testBodies,
	})
}

// contractTransport is an HTTP transport that compares the requests to a gateway and their answers
// with the contract.
type contractTransport struct {
	base        http.RoundTripper
	mu          sync.Mutex
	checker     *contracttest.Checker
	differences []string
}

// RoundTrip sends a request, and compares the request and its answer with the contract.
func (c *contractTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	requestBody, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(requestBody))
	resp, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answerBody, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answerBody))
	if gzipReader, gzipErr := gzip.NewReader(bytes.NewReader(requestBody)); gzipErr == nil && r.Header.Get("Content-Encoding") == "gzip" {
		requestBody, _ = io.ReadAll(io.LimitReader(gzipReader, 1<<20))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.differences = append(c.differences, c.checker.Check(contracttest.Exchange{
		Method: r.Method, Target: r.URL.RequestURI(), Request: r.Header, RequestBody: requestBody,
		Status: resp.StatusCode, Answer: resp.Header, AnswerBody: answerBody,
	})...)
	return resp, err
}

// checkTraffic compares the further traffic of a gateway with a contract. When the test ends, it fails
// the test for each difference.
func checkTraffic(g *e2e.Gateway, checker *contracttest.Checker) {
	transport := &contractTransport{base: g.HTTP.Transport, checker: checker}
	g.HTTP.Transport = transport
	g.T.Cleanup(func() {
		for _, difference := range slices.Compact(slices.Sorted(slices.Values(transport.differences))) {
			g.T.Error(difference)
		}
	})
}

// TestRoutesAreTheContractsOperations compares the routes of the gateway with the operations of the contract.
func TestRoutesAreTheContractsOperations(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "contract.yaml"))
	opened := relaytest.Must(g.Open())(t)
	defer func() {
		if problem := opened.Abandon(); problem != "" {
			t.Error(problem)
		}
	}()
	for _, difference := range contracttest.DiffRoutes(opened.Routes(), contract(t)) {
		t.Error(difference)
	}
}

// send sends a sample as a client, with additional headers: name, value, …. It replaces NEW
// with a new id.
func (s sample) send(c e2e.Client, headers ...string) e2e.Response {
	c.Gateway.T.Helper()
	c = c.With("Content-Type", s.contentType)
	for pair := range slices.Chunk(headers, 2) {
		c = c.With(pair[0], pair[1])
	}
	newIDs := strings.NewReplacer("NEW", relay.NewID(time.Now()))
	return c.Do(s.method, newIDs.Replace(s.target), newIDs.Replace(s.body))
}

// clients returns a client that may send a sample, and a client with valid credentials that may not.
func (s sample) clients(g *e2e.Gateway) (owner, forbidden e2e.Client) {
	if strings.HasPrefix(s.target, "/admin") {
		return g.Admin(), g.SignedIn("viewer-of-acme")
	}
	if strings.HasPrefix(s.target, "/v2") || strings.HasPrefix(s.target, "/v3") {
		return e2e.CustomerOf(g), g.XAuth("acme-hook-0123456")
	}
	if strings.HasPrefix(s.target, "/iot") || strings.HasPrefix(s.target, "/ledgers") {
		return g.WithToken("acme-all-0123456"), g.WithToken("acme-hook-0123456")
	}
	return g.WithToken("acme-all-0123456"), g.WithToken("acme-customer-0123456")
}

// TestTrafficKeepsTheContract makes every operation return every documented status, and compares the
// requests and answers with the contract.
func TestTrafficKeepsTheContract(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	checker := contracttest.New(doc)
	e2e.OnOneAndOnThree(t, func(t *testing.T, s *e2e.Site) {
		g := e2e.Start(t, s, e2e.Fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true", "PENSTOCK_TRUSTED_PROXIES=127.0.0.0/8")
		checkTraffic(g, checker)
		allSamples := samples(fillWithSamples(g))
		for _, s := range allSamples {
			owner, _ := s.clients(g)
			resp := s.send(owner)
			expectedRefusal := s.operation == "forgetGateway" && resp.Status == 409 // the gateway runs
			if resp.Status > 299 && !expectedRefusal && (resp.Status != 302 || s.operation != "followToken" && s.operation != "root") {
				t.Errorf("%s: %d %s", resp.Request, resp.Status, resp.Body)
			}
		}
		if len(g.Members) == 0 || e2e.Soak() { // refusals do not depend on other gateways
			checkOmissions(g, doc, allSamples)
			tooLarge := gzipped(t, io.LimitReader(blankReader{}, 9<<20))
			for n, s := range allSamples {
				checkCommonRefusals(g, doc, s, tooLarge, fmt.Sprintf("198.51.%d.%d", n/250, n%250))
			}
		}
		checkMistakes(g)
		checkSessions(g)
		readEveryPage(g)
	})
	t.Run("while the database is down and the journal is full", func(t *testing.T) { testContractOutage(t, doc, checker) })
	t.Run("with a provider", func(t *testing.T) { testContractProvider(t, checker) })
	t.Run("after the database was lost", func(t *testing.T) { testContractRecover(t, checker) })
	missing := slices.DeleteFunc(checker.Uncovered(), func(name string) bool {
		return name == "putInventory 409" || // only after ten lost races with other gateways; tested by the table of errors in ingest/admin
			name == "downloadCallRecords 202" || // the archive may be ready at once; tested in ingest/restv2
			name == "streamCDR 422" || // the file may be ready at once; tested in ingest/restv3
			name == "forgetGateway 204" // only if a gateway is away for 20 seconds; tested in ingest/admin
	})
	for _, name := range missing {
		t.Errorf("no request was answered as documented: %s", name)
	}
	checkRequiredFields(t, checker)
	checkExamples(t, doc, checker.Examples())
}

var recordExamples = flag.Bool("examples", false, "write the examples of the API documentation from the traffic of TestTrafficKeepsTheContract")

// checkExamples fails the test unless the document has an example for each recorded kind of body. With
// -examples it writes the examples instead.
func checkExamples(t *testing.T, doc *openapi3.T, examples contracttest.Examples) {
	t.Helper()
	if *recordExamples {
		encoded, err := json.MarshalIndent(examples, "", " ")
		relaytest.NoError(t, err)
		relaytest.NoError(t, os.WriteFile(filepath.Join(e2e.Root(t), "ingest", "openapi", "examples.json"), append(encoded, '\n'), 0o644))
		return
	}
	for op := range operations(doc) {
		e := examples[op.OperationID]
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

// sampleIDs are the ids of the records that fillWithSamples creates.
type sampleIDs struct {
	device, spare, sensor, message, archive, node string
	asset                                         e2e.Asset
	sims                                          simSampleIDs
	pending                                       string // the id of a pending message
	usage                                         usageSampleIDs
	rules                                         ruleSampleIDs
	leaver                                        string // a user
	revoked                                       string // a token's id
	created                                       createdIDs
}

// fillWithSamples creates the records that samples name, for example a device with readings and a
// message in an inbox, and returns their ids.
func fillWithSamples(g *e2e.Gateway) sampleIDs {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/webhooks/generic?decoder_id=sent", `[{"id":"shed","temperature":5},{"id":"shed","door":"ajar"}]`).Mentions(g.T, 200, "ajar")
	acme.Post("/webhooks/generic?decoder_id=sent", `{"id":"spare","temperature":5}`).Mentions(g.T, 200, "temperature")
	acme.Post("/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(g.T, "chirpstack/up.json")).Expect(g.T, 200, "")
	acme.Post("/inbound/sms/json", `{"id":"desk-1","from":"447700900123","to":"447860000002","text":"hi"}`).Mentions(g.T, 200, "id")
	g.AwaitProcessed()
	device := acme.AwaitDevice("shed")
	list := acme.LatestReadings(device)
	var inbox struct{ Data []struct{ ID string } }
	e2e.CustomerOf(g).Get("/v2/sms-relay/vmn/desk/inbox").Decode(g.T, &inbox)
	if len(list) != 2 || len(inbox.Data) != 1 {
		g.T.Fatalf("readings = %d, messages in the inbox = %d; want 2 and 1", len(list), len(inbox.Data))
	}
	acme.Do("PATCH", "/iot/devices/"+device, `{"frame_logging":"enabled"}`).Mentions(g.T, 200, "enabled")
	acme.Post("/webhooks/generic", `{"id":"shed","temperature":6}`).Mentions(g.T, 200, "temperature")
	return sampleIDs{device, acme.AwaitDevice("spare"), list[0].SensorID, inbox.Data[0].ID, createSampleArchive(g), g.AwaitNode(), g.MintToken(), createSampleSIMs(g), createPendingMessage(g), createSampleUsage(g), createSampleRules(g), createSampleUsers(g), addToken(g, "iot").Data.ID, createSampleRecords(g)}
}

// createSampleArchive requests an archive of call records, waits for it and returns its handle.
func createSampleArchive(g *e2e.Gateway) string {
	g.T.Helper()
	acme := e2e.CustomerOf(g)
	handle := acme.RequestArchive(`{"from_date":"2026-11-01","to_date":"2026-11-30"}`)
	acme.DownloadArchive(handle)
	return handle
}

// checkCommonRefusals sends a sample with each mistake that all operations refuse in the same way, if
// the operation documents the status. clientAddr is the address of the client.
func checkCommonRefusals(g *e2e.Gateway, doc *openapi3.T, s sample, tooLarge, clientAddr string) {
	g.T.Helper()
	owner, forbidden := s.clients(g)
	isDocumented := func(status string) bool { return operation(doc, s.operation).Responses.Value(status) != nil }
	expectStatus := func(status int, resp e2e.Response) {
		g.T.Helper()
		if resp.Status != status {
			g.T.Errorf("%s: %d %s, want %d", resp.Request, resp.Status, resp.Body, status)
		}
	}
	if isDocumented("401") {
		for _, token := range []string{"", "nobody"} { // failed attempts are limited by address: each sample uses its own
			expectStatus(401, s.send(g.WithToken(token).With("X-Forwarded-For", clientAddr)))
		}
	}
	if isDocumented("403") && !openToAccounts(s.operation) {
		expectStatus(403, s.send(forbidden))
	}
	switch op := operation(doc, s.operation); {
	case isList(op):
		checkUnknownParameter(op, s, owner)
	case s.method != http.MethodGet && !takesAnyParameter(s.target):
		answer := s.withUnknownParameter().send(owner)
		answer.Mentions(g.T, 422, "This parameter is unknown")
	}
	if !isDocumented("413") {
		return
	}
	s.contentType = "application/json"
	s.body = "no gzip"
	expectStatus(400, s.send(owner, "Content-Encoding", "gzip"))
	expectStatus(415, s.send(owner, "Content-Encoding", "br"))
	s.body = tooLarge
	expectStatus(413, s.send(owner, "Content-Encoding", "gzip"))
	if !strings.HasPrefix(s.operation, "kannel") && s.operation != "putInventory" {
		s.body = "{"
		expectStatus(422, s.send(owner))
	}
}

// isList reports whether an operation returns a list of records.
func isList(op locatedOperation) bool {
	answer := op.Responses.Value("200")
	if op.method != http.MethodGet || answer == nil || answer.Value.Content["application/json"] == nil {
		return false
	}
	schema := answer.Value.Content["application/json"].Schema.Value
	if data := schema.Properties["data"]; data != nil {
		schema = data.Value
	}
	return schema.Type.Is("array")
}

// takesAnyParameter reports whether an operation accepts unknown parameters: senders of webhooks and
// carriers add their own parameters, and do not repeat a refused post.
func takesAnyParameter(target string) bool {
	return slices.ContainsFunc([]string{"/webhooks", "/inbound", "/soap"}, func(prefix string) bool { return strings.HasPrefix(target, prefix) })
}

func (s sample) withUnknownParameter() sample {
	separator := "?"
	if strings.Contains(s.target, "?") {
		separator = "&"
	}
	s.target += separator + "unknown=1"
	return s
}

// checkUnknownParameter requests a list with an unknown parameter, and checks that the error names
// exactly the parameters in the contract.
func checkUnknownParameter(op locatedOperation, s sample, owner e2e.Client) {
	owner.Gateway.T.Helper()
	answer := s.withUnknownParameter().send(owner)
	var want []string
	for _, p := range op.Parameters {
		name, _, _ := strings.Cut(p.Value.Name, "[") // filters[iccid][value] is the parameter filters
		if p.Value.In == openapi3.ParameterInQuery && !slices.Contains(want, name) {
			want = append(want, name)
		}
	}
	_, names, _ := strings.Cut(answer.Body, "the operation takes ")
	names, _, _ = strings.Cut(names, ".")
	var got []string
	if names != "no parameters" {
		got = strings.Split(names, ", ")
	}
	slices.Sort(want)
	slices.Sort(got)
	if answer.Status != 422 || !slices.Equal(got, want) {
		owner.Gateway.T.Errorf("%s: %d %s, want 422 and the parameters %q", answer.Request, answer.Status, answer.Body, want)
	}
}

// readEveryPage reads files of the console, and reads the lists of events and deliveries page by page.
// It runs after all samples. It also replays deliveries and prunes the inventory.
func readEveryPage(g *e2e.Gateway) {
	g.T.Helper()
	g.AwaitProcessed()
	awaitAnyDelivery(g, "g1", "retrying")
	awaitAnyDelivery(g, "g2", "simulated")
	for _, file := range []string{"/console", "/console/style.css", "/console/core/dom.js"} {
		g.WithToken("").With("If-None-Match", "*").Get(file).Expect(g.T, 304, "")
	}
	for list, page := range map[string]int{"/admin/events": 20, "/admin/deliveries": 2} {
		if records := e2e.List[json.RawMessage](g.Admin(), fmt.Sprintf("%s?limit=%d", list, page)); len(records) <= page {
			g.T.Errorf("%s has one page, want several", list)
		}
	}
	g.Admin().Post("/admin/deliveries/replay", `{"relay":"g1"}`).Mentions(g.T, 200, "count")
	g.Admin().Put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"globex"}]}`).Mentions(g.T, 200, "account acme: decoder lpp", "account acme: it may hold")
}

// awaitAnyDelivery waits until a delivery of a relay is in a state.
func awaitAnyDelivery(g *e2e.Gateway, relay, state string) {
	g.T.Helper()
	relaytest.Eventually(g.T, "a delivery of "+relay+" is "+state, func() (any, bool) {
		found := g.Deliveries("relay=" + relay)
		return found, slices.ContainsFunc(found, func(delivery e2e.Delivery) bool { return delivery.State == state })
	})
}
