package contract

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// openPaths are the paths whose parameters belong to no account: public objects, or
// posts that are accepted for the account of the token.
func openPaths() []string {
	return []string{"/v2/network-lookup/", "/webhooks/", "/inbound/", "/t/"}
}

// TestAccountsAreIsolated sends every request that succeeds for one account as
// another one, whose token may do everything. What names a record is refused, no
// answer tells of one, and nothing has changed afterwards. The requests are those
// that the contract is tested with; an operation without one fails the test.
func TestAccountsAreIsolated(t *testing.T) {
	t.Parallel()
	e2e.OnOneGateway(t, testAccountIsolation)
}

func testAccountIsolation(t *testing.T, s *e2e.Site) {
	doc := contract(t)
	g := e2e.Start(t, s, e2e.Fixture(t, "contract.yaml"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	made := fillWithSamples(g)
	g.Admin().Put("/admin/inventory", `{"accounts":[{"name":"globex","credit":5,"tokens":[{"token":"globex-all-0123456","scopes":["messaging","cellular","iot","ledger","webhook","carrier"]}]}]}`).Mentions(t, 200)
	all := slices.DeleteFunc(samples(made), func(s sample) bool { return !ofAccounts(operation(doc, s.operation)) })
	g.AwaitProcessed()
	before := readOwnData(g, all)
	secrets := marks(made)
	tried := map[string]bool{}
	for _, s := range all {
		tried[s.operation] = true
		a := s.send(otherAccount(g, s))
		if a.Status >= 500 || namesRecords(doc, s) && a.Status < 400 {
			t.Errorf("%s: %d %s, and it is another account's", a.Request, a.Status, a.Body)
		}
		for _, secret := range secrets {
			if strings.Contains(a.Body, secret) && !strings.Contains(s.target+s.body, secret) {
				t.Errorf("%s: %d %s tells of %s", a.Request, a.Status, a.Body, secret)
			}
		}
	}
	g.AwaitProcessed()
	after := readOwnData(g, all)
	for target, body := range before {
		if withoutUnmapped(after[target]) != withoutUnmapped(body) {
			t.Errorf("%s was\n%s\nand is\n%s", target, body, after[target])
		}
	}
	for op := range operations(doc) {
		if ofAccounts(op) && !tried[op.OperationID] {
			t.Errorf("%s was not tried", op.OperationID)
		}
	}
}

// ofAccounts reports whether an operation takes the token of an account.
func ofAccounts(op located) bool {
	return op.Responses.Value("401") != nil && !strings.HasPrefix(op.path, "/admin")
}

// isOpen reports whether a sample's path is one of openPaths.
func (s sample) isOpen() bool {
	return slices.ContainsFunc(openPaths(), func(open string) bool { return strings.HasPrefix(s.target, open) })
}

// namesRecords reports whether the path of an operation has a parameter that is an
// account's.
func namesRecords(doc *openapi3.T, s sample) bool {
	return !s.isOpen() && strings.Contains(operation(doc, s.operation).path, "{")
}

// otherAccount is globex, where a sample is acme's.
func otherAccount(g *e2e.Gateway, s sample) e2e.Client {
	if strings.HasPrefix(s.target, "/v2") || strings.HasPrefix(s.target, "/v3") {
		return g.XAuth("globex-all-0123456")
	}
	return g.As("globex-all-0123456")
}

// readOwnData is what acme reads of its own, by the request.
func readOwnData(g *e2e.Gateway, all []sample) map[string]string {
	g.T.Helper()
	out := map[string]string{}
	for _, s := range all {
		if s.method != "GET" || s.isOpen() {
			continue
		}
		owner, _ := s.owner(g)
		a := s.send(owner)
		if a.Status != 200 {
			g.T.Fatalf("%s: %d %s", a.Request, a.Status, a.Body)
		}
		out[s.target] = a.Body
	}
	return out
}

// withoutUnmapped removes the keys without a mapping from an answer: they are saved some
// seconds after their frames.
func withoutUnmapped(body string) string {
	return regexp.MustCompile(`,"unmapped":\[[^]]*\]`).ReplaceAllString(body, "")
}

// marks are texts that only acme's records hold.
func marks(of sampleIDs) []string {
	return []string{
		of.device, of.spare, of.sensor, `"` + of.message + `"`, of.archive, of.asset.Token, of.asset.Private, of.asset.Job, of.asset.Claim,
		of.usage.file, of.usage.report, of.sims.pool, of.sims.subscriber, of.sims.recipient, of.sims.poolRecipient, of.sims.job,
		e2e.PendingSIM, e2e.ActiveSIM, e2e.PooledSIM, "234150000000001", "447700900001", "87654321", "sim@example.com", "pool@example.com",
		"Meters", "Byron", "Field tester", "An expression per key", "Where they are", "192.0.2.1", "4478000", "447860000002",
	}
}
