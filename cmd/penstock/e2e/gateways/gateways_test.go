// Package gateways tests several gateways on the same back ends end to end.
package gateways

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGatewaysShareTheirState runs three gateways on the same back ends, and checks that each gateway
// answers for all gateways.
func TestGatewaysShareTheirState(t *testing.T) {
	s := e2e.RealSite(t)
	t.Run("a token revoked on one gateway is refused by the others", func(t *testing.T) { testRevoked(t, s) })
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *e2e.Site)
	}{
		{"a usage report adds up the records of several gateways", testSplitUsage},
		{"a monthly limit is reached by the records of several gateways", testSplitLimit},
		{"an archive of one gateway is downloaded from the others", testSplitArchive},
		{"an event is listed, traced and replayed by a gateway that did not receive it", testSplitEvents},
		{"a ledger of one gateway is used on the others", testSplitLedger},
		{"the parts of a message on several gateways are joined once", testSplitParts},
		{"an Idempotency-Key is one order on all gateways", testSplitKey},
		{"a record posted to several gateways is counted once", testSplitDuplicates},
		{"a gateway that is killed loses nothing", testKilledMember},
		{"the database contains no credential", testStolenDatabase},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, s)
		})
	}
}

// requireOK fails the test unless every answer has status 200.
func requireOK(t *testing.T, answers []e2e.Response) {
	t.Helper()
	for _, resp := range answers {
		resp.Mentions(t, http.StatusOK)
	}
}

func testSplitUsage(t *testing.T, s *e2e.Site) {
	c := e2e.StartCluster(t, s, e2e.UsageInventory("https://127.0.0.1:9/"))
	e2e.CarrierOf(c.Gateways[0]).Post("/inbound/cdr/sim", e2e.UsageRecord("a1", e2e.SIMA, 100)+e2e.UsageRecord("a2", e2e.SIMB, 20)).Mentions(t, 200, `"records":2`)
	e2e.CarrierOf(c.Gateways[1]).Post("/inbound/cdr/sim", e2e.UsageRecord("b1", e2e.SIMA, 1000)+e2e.UsageRecord("b2", e2e.SIMC, 7)).Mentions(t, 200, `"records":2`)
	c.Front.AwaitProcessed()
	customer := e2e.CustomerOf(c.Gateways[2])
	id := customer.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	report := customer.Get("/v3/mno/job/" + id + "/usage")
	for iccid, bytes := range map[string]int{e2e.SIMA: 1100, e2e.SIMB: 20, e2e.SIMC: 7} {
		if got := e2e.UsageBySIM(t, report)[iccid]; got != bytes {
			t.Errorf("usage of SIM %s = %d bytes, want %d", iccid, got, bytes)
		}
	}
	for _, g := range c.Gateways {
		e2e.CustomerOf(g).Get("/v3/mno/job/"+id+"/usage").Expect(t, 200, report.Body)
	}
}

func testSplitLimit(t *testing.T, s *e2e.Site) {
	callback := e2e.NewEventCallback(t)
	c := e2e.StartCluster(t, s, e2e.UsageInventory(callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	e2e.CustomerOf(c.Gateways[0]).Put("/v3/mno/"+e2e.SIMA+"/usage-limit", `{"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit":"block"}`).Mentions(t, 200, "block")
	post := func(name string, bytes int) {
		requireOK(t, c.PostToEach("/inbound/cdr/sim", e2e.CarrierOf, func(n int) string { return e2e.UsageRecord(fmt.Sprint(name, n), e2e.SIMA, bytes) }))
		c.Front.AwaitProcessed()
	}
	post("under", 266)
	if got := callback.Received(); len(got) > 0 {
		t.Errorf("events after 798 of 800 bytes = %q, want none", got)
	}
	post("near", 1)
	callback.AwaitExactly(t, "usage.limit_warning "+e2e.SIMA)
	post("over", 100)
	want := []string{"usage.limit_warning " + e2e.SIMA, "usage.limit_reached " + e2e.SIMA, "sim.state_changed " + e2e.SIMA + " suspended"}
	callback.AwaitExactly(t, want...)
	post("after", 1)
	callback.AwaitExactly(t, want...)
	for _, g := range c.Gateways {
		e2e.CustomerOf(g).Get("/v3/mno/"+e2e.SIMA).Mentions(t, 200, `"current_state":"suspended"`)
	}
	if deliveries := c.Front.Deliveries("q=usage.limit_reached"); len(deliveries) > 1 {
		t.Errorf("deliveries about the limit = %d, want at most 1", len(deliveries))
	}
}

func testSplitArchive(t *testing.T, s *e2e.Site) {
	c := e2e.StartCluster(t, s, e2e.Fixture(t, "contract.yaml"))
	requireOK(t, c.PostToEach("/inbound/cdr/sip", e2e.CarrierOf, func(n int) string { return e2e.CallRecord(fmt.Sprint("call-", n)) }))
	c.Front.AwaitProcessed()
	handle := e2e.CustomerOf(c.Gateways[0]).RequestArchive(e2e.ArchiveOfNovember)
	want := e2e.CustomerOf(c.Gateways[0]).DownloadArchive(handle)
	if rows := want["cdr-20261101-20261130.csv"]; len(rows) != e2e.ClusterSize {
		t.Fatalf("archive = %q, want %d calls", want, e2e.ClusterSize)
	}
	archive := e2e.CustomerOf(c.Gateways[0]).Get("/v2/sip/cdr/" + handle + "/download").Body
	for _, g := range c.Gateways[1:] {
		if got := e2e.CustomerOf(g).Get("/v2/sip/cdr/" + handle + "/download"); got.Status != 200 || got.Body != archive {
			t.Errorf("%s: %d and an archive of %d bytes, want 200 and the same archive", got.Request, got.Status, len(got.Body))
		}
	}
}

func testSplitLedger(t *testing.T, s *e2e.Site) {
	callback := e2e.NewLedgerCallback(t)
	c := e2e.StartCluster(t, s, e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	clientA, clientB, clientC := e2e.CarrierOf(c.Gateways[0]), e2e.CarrierOf(c.Gateways[1]), e2e.CarrierOf(c.Gateways[2])
	var ledgers []struct{ Name, Hash string }
	clientC.Get("/ledgers").Decode(t, &ledgers)
	var job string
	clientA.Post("/ledgers/assets/tokens", `{"metadata":{"a":1},"private_metadata":{"owner":"x"}}`).Decode(t, &job)
	var created struct{ Data struct{ Token string } }
	c.Gateways[1].AwaitLedgerJob(clientB, job, &created)
	token := `{"token":"` + created.Data.Token + `"}`
	clientB.Post("/ledgers/tokens/metadata", `{"token":"`+created.Data.Token+`","metadata":{"place":"yard"}}`).Mentions(t, 200)
	var jobs []string
	for range 2 {
		for _, resp := range c.PostToEach("/ledgers/tokens/claim", e2e.CarrierOf, func(int) string { return token }) {
			var claimed struct{ JobID string }
			resp.Decode(t, &claimed)
			jobs = append(jobs, claimed.JobID)
		}
	}
	for n, id := range jobs {
		c.Gateways[n%e2e.ClusterSize].AwaitLedgerJob(e2e.CarrierOf(c.Gateways[n%e2e.ClusterSize]), id, nil)
	}
	history := clientC.Get("/ledgers/tokens/" + created.Data.Token + "/history").Body
	if n := strings.Count(history, `"claimed"`); n != 3 {
		t.Errorf("claims = %d, want 3:\n%s", n, history)
	}
	relaytest.Eventually(t, "the callback URL has received every claim", func() (any, bool) {
		jobs, claims, unexpected := callback.Counts()
		return []int{jobs, claims, unexpected}, claims == 3 && unexpected == 0
	})
	export := clientA.Get("/ledgers/" + ledgers[0].Hash + "/export").Body
	for _, g := range c.Gateways {
		g.WithToken("acme-all-0123456").Get("/ledgers/"+ledgers[0].Hash+"/export").Expect(t, 200, export)
	}
}

func testRevoked(t *testing.T, s *e2e.Site) {
	c := e2e.StartCluster(t, s, e2e.UsageInventory("https://127.0.0.1:9/"))
	for _, g := range c.Gateways {
		g.XAuth("globex-token-0123456").Get("/v3/mno").Mentions(t, 200, e2e.SIMG)
		g.WithToken("globex-token-0123456").Post("/inbound/cdr/sim", e2e.UsageRecord("x", e2e.SIMG, 1)).Mentions(t, 200)
	}
	c.Gateways[0].Admin().Put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"globex","tokens":[{"token":"globex-2-0123456","scopes":["cellular","carrier"]}]}]}`).Mentions(t, 200)
	for _, g := range c.Gateways {
		relaytest.Eventually(t, "the token is refused", func() (any, bool) {
			resp := g.XAuth("globex-token-0123456").Get("/v3/mno")
			return resp, resp.Status == http.StatusUnauthorized
		})
		g.WithToken("globex-token-0123456").Post("/inbound/cdr/sim", e2e.UsageRecord("y", e2e.SIMG, 1)).Mentions(t, 401)
		g.WithToken("globex-2-0123456").Post("/inbound/cdr/sim", e2e.UsageRecord("z", e2e.SIMG, 1)).Mentions(t, 200)
	}
}

func testSplitParts(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	c := e2e.StartCluster(t, s, e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", s.Mailbox()))
	const count = 10
	for ref := range count {
		requireOK(t, c.PostToEach("/inbound/sms/json", e2e.CarrierOf, func(n int) string {
			body, err := json.Marshal(map[string]any{
				"id": fmt.Sprintf("m%d-%d", ref, n), "from": "447700900123", "to": "447800019999", "text": fmt.Sprintf("%d%c ", ref, 'a'+n),
				"udh": fmt.Sprintf("050003%02x%02x%02x", ref, e2e.ClusterSize, n+1),
			})
			relaytest.NoError(t, err)
			return string(body)
		}))
	}
	c.Front.AwaitProcessed()
	sink.Await(t, "/vmn", count)
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		deliveries := c.Gateways[1].Deliveries("relay=v-get&state=delivered")
		return deliveries, len(deliveries) == count
	})
	var got, want []string
	for _, req := range sink.Requests("/vmn") {
		got = append(got, req.Query.Get("msg"))
	}
	for ref := range count {
		want = append(want, fmt.Sprintf("%da %db %dc ", ref, ref, ref))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("delivered messages = %q, want %q", got, want)
	}
}

func testSplitKey(t *testing.T, s *e2e.Site) {
	c := e2e.StartCluster(t, s, "accounts: [{name: acme, credit: 100, tokens: [{token: acme-all-0123456}]}]")
	body := e2e.BodyForTomorrow(`"message":"once"`)
	answerA := e2e.CustomerOf(c.Gateways[0]).With("Idempotency-Key", "k1").Post("/v2/sms/send", body)
	answerB := e2e.CustomerOf(c.Gateways[1]).With("Idempotency-Key", "k1").Post("/v2/sms/send", body)
	if answerA.Status != 200 || answerB.Body != answerA.Body || answerB.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("gateway A: %d %s\ngateway B: %d %s\nwant the same, repeated by B", answerA.Status, answerA.Body, answerB.Status, answerB.Body)
	}
	const rounds = 10
	for round := range rounds {
		key := fmt.Sprint("race-", round)
		answers := c.PostToEach("/v2/sms/send", func(g *e2e.Gateway) e2e.Client { return e2e.CustomerOf(g).With("Idempotency-Key", key) }, func(int) string { return body })
		requireOK(t, answers)
		newOrders := slices.DeleteFunc(slices.Clone(answers), func(resp e2e.Response) bool { return resp.Header.Get("Idempotency-Replayed") == "true" })
		if len(newOrders) != 1 || answers[0].Body != answers[1].Body || answers[0].Body != answers[2].Body {
			t.Errorf("new orders with one key = %d, answers = %s, %s and %s, want one order and one answer", len(newOrders), answers[0].Body, answers[1].Body, answers[2].Body)
		}
	}
	for _, g := range c.Gateways {
		var list struct{ Data []struct{ ID int64 } }
		g.Admin().Get("/admin/messages?account=1&limit=1000").Decode(t, &list)
		if len(list.Data) != 1+rounds {
			t.Errorf("number of messages = %d, want %d", len(list.Data), 1+rounds)
		}
		relaytest.Equal(t, "the balance", g.Credit(t, 1).Meta.Balance, 100-1-rounds)
	}
}

func testSplitDuplicates(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	inventory := e2e.UsageInventory("https://127.0.0.1:9/") + fmt.Sprintf(`
  - name: initech
    tokens: [{token: initech-all-0123456, scopes: [messaging, carrier]}]
    relays: {geo: [{id: g-all, prefix: "4478", action: http_get, parameters: ["%s/in?m=%%m"]}]}
`, sink.URL)
	c := e2e.StartCluster(t, s, inventory)
	initech := func(g *e2e.Gateway) e2e.Client { return g.WithToken("initech-all-0123456") }
	const count = 10
	for n := range count {
		requireOK(t, c.PostToEach("/inbound/cdr/sim", e2e.CarrierOf, func(int) string { return e2e.UsageRecord(fmt.Sprint("u", n), e2e.SIMA, 100) }))
		requireOK(t, c.PostToEach("/inbound/cdr/sip", initech, func(int) string { return e2e.CallRecord(fmt.Sprint("c", n)) }))
		requireOK(t, c.PostToEach("/inbound/sms/json", initech, func(int) string {
			return fmt.Sprintf(`{"id":"m%d","from":"447700900123","to":"447800012345","text":"text %d"}`, n, n)
		}))
	}
	c.Front.AwaitProcessed()
	acme, voice := e2e.CustomerOf(c.Gateways[2]), c.Gateways[1].XAuth("initech-all-0123456")
	report, file := acme.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod()), acme.CompleteJob("/v3/mno/job/cdr", e2e.CurrentPeriod())
	relaytest.Equal(t, "the bytes of the SIM", e2e.UsageBySIM(t, acme.Get("/v3/mno/job/"+report+"/usage"))[e2e.SIMA], 100*count)
	relaytest.Equal(t, "lines of the file of records", strings.Count(acme.Get("/v3/mno/job/"+file+"/cdr/stream").Body, "\n"), 1+count)
	relaytest.Equal(t, "rows of the archive", len(voice.DownloadArchive(voice.RequestArchive(e2e.ArchiveOfNovember))["cdr-20261101-20261130.csv"]), count)
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		deliveries := c.Front.Deliveries("relay=g-all")
		return deliveries, len(deliveries) == count && !slices.ContainsFunc(deliveries, func(delivery e2e.Delivery) bool { return delivery.State != "delivered" })
	})
	relaytest.Equal(t, "messages that arrived", len(sink.Requests("/in")), count)
}

func testKilledMember(t *testing.T, s *e2e.Site) {
	arrivals, url := e2e.NewMessageCounter(t)
	c := e2e.NewCluster(t, s, e2e.Fixture(t, "load.yaml", "SINK", url))
	c.Spawn()
	l := c.Front.StartLoad(1)
	for round := range 2 {
		for _, change := range []func(){c.Gateways[round].Kill, c.Gateways[round].Spawn} {
			l.AwaitMessages(t, 50)
			change()
		}
	}
	l.AwaitMessages(t, 50)
	l.End()
	l.Check(t, arrivals)
	for _, g := range c.Gateways {
		g.TerminateCleanly()
	}
}
