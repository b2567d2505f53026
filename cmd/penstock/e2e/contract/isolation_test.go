package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// openPaths returns the prefixes of paths with parameters that belong to no account: the parameters
// name public objects, or parts of posts that are accepted for the account of the token.
func openPaths() []string {
	return []string{"/v2/network-lookup/", "/webhooks/", "/inbound/", "/t/"}
}

// TestAccountsAreIsolated sends every sample of one account with the token of another account, which
// has every scope. Requests that name a record are refused, no answer contains data of the first
// account, and the data stays the same. An operation without a sample fails the test.
func TestAccountsAreIsolated(t *testing.T) {
	t.Parallel()
	e2e.OnOneGateway(t, testAccountIsolation)
}

func testAccountIsolation(t *testing.T, s *e2e.Site) {
	doc := contract(t)
	g := e2e.Start(t, s, e2e.Fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	ids := fillWithSamples(g)
	g.Admin().Put("/admin/inventory", `{"accounts":[{"name":"globex","credit":5,"tokens":[{"token":"globex-all-0123456","scopes":["messaging","cellular","iot","ledger","webhook","carrier"]}]}]}`).Mentions(t, 200)
	accountSamples := slices.DeleteFunc(samples(ids), func(s sample) bool { return !ofAccounts(operation(doc, s.operation)) })
	g.AwaitProcessed()
	oldData := readOwnData(g, accountSamples)
	secrets := textsOfAcme(ids)
	triedOperations := map[string]bool{}
	for _, s := range accountSamples {
		triedOperations[s.operation] = true
		resp := s.send(otherAccount(g, s))
		if resp.Status >= 500 || namesRecords(doc, s) && resp.Status < 400 {
			t.Errorf("%s: %d %s for a record of another account", resp.Request, resp.Status, resp.Body)
		}
		for _, secret := range secrets {
			if strings.Contains(resp.Body, secret) && !strings.Contains(s.target+s.body, secret) {
				t.Errorf("%s: %d %s contains %s", resp.Request, resp.Status, resp.Body, secret)
			}
		}
	}
	g.AwaitProcessed()
	newData := readOwnData(g, accountSamples)
	for target, body := range oldData {
		if withoutUnmapped(newData[target]) != withoutUnmapped(body) {
			t.Errorf("%s changed from\n%s\nto\n%s", target, body, newData[target])
		}
	}
	for op := range operations(doc) {
		if ofAccounts(op) && !triedOperations[op.OperationID] {
			t.Errorf("%s has no sample", op.OperationID)
		}
	}
}

// ofAccounts reports whether an operation accepts the token of an account.
func ofAccounts(op locatedOperation) bool {
	return op.Responses.Value("401") != nil && !strings.HasPrefix(op.path, "/admin")
}

// isOpen reports whether a sample's path is one of openPaths.
func (s sample) isOpen() bool {
	return slices.ContainsFunc(openPaths(), func(prefix string) bool { return strings.HasPrefix(s.target, prefix) })
}

// namesRecords reports whether the path of a sample's operation has a parameter that names a
// record of an account.
func namesRecords(doc *openapi3.T, s sample) bool {
	return !s.isOpen() && strings.Contains(operation(doc, s.operation).path, "{")
}

// otherAccount returns a client of globex for a sample of acme.
func otherAccount(g *e2e.Gateway, s sample) e2e.Client {
	if strings.HasPrefix(s.target, "/v2") || strings.HasPrefix(s.target, "/v3") {
		return g.XAuth("globex-all-0123456")
	}
	return g.WithToken("globex-all-0123456")
}

// readOwnData sends the GET samples as acme, and returns the answers by target.
func readOwnData(g *e2e.Gateway, ownSamples []sample) map[string]string {
	g.T.Helper()
	answers := map[string]string{}
	for _, s := range ownSamples {
		if s.method != "GET" || s.isOpen() {
			continue
		}
		owner, _ := s.clients(g)
		resp := s.send(owner)
		if resp.Status != 200 {
			g.T.Fatalf("%s: %d %s", resp.Request, resp.Status, resp.Body)
		}
		answers[s.target] = resp.Body
	}
	return answers
}

// withoutUnmapped removes the list of unmapped keys from an answer, because unmapped keys are saved
// some seconds after their frames.
func withoutUnmapped(body string) string {
	return regexp.MustCompile(`,"unmapped":\[[^]]*\]`).ReplaceAllString(body, "")
}

// textsOfAcme returns texts that only records of acme contain.
func textsOfAcme(ids sampleIDs) []string {
	return []string{
		ids.device, ids.spare, ids.sensor, `"` + ids.message + `"`, ids.archive, ids.asset.Token, ids.asset.Private, ids.asset.Job, ids.asset.Claim,
		ids.usage.file, ids.usage.report, ids.sims.pool, ids.sims.subscriber, ids.sims.recipient, ids.sims.poolRecipient, ids.sims.job,
		e2e.PendingSIM, e2e.ActiveSIM, e2e.PooledSIM, "234150000000001", "447700900001", "87654321", "sim@example.com", "pool@example.com",
		"Meters", "Byron", "Field tester", "An expression per key", "Where they are", "192.0.2.1", "4478000", "447860000002",
	}
}
