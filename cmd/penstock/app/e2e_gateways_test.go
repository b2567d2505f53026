package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGatewaysAreOne runs three gateways on the same back ends: whichever is asked,
// the answer is that of all.
func TestGatewaysAreOne(t *testing.T) {
	s := realSite(t)
	t.Run("a token revoked at one is refused at the others within 2 s", func(t *testing.T) { testRevoked(t, s) })
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *site)
	}{
		{"a usage report sums up records that came to several", testSplitUsage},
		{"a monthly limit is reached by records that came to several", testSplitLimit},
		{"an archive made at one is downloaded at the others", testSplitArchive},
		{"an event is listed, traced and replayed at a gateway that did not take it", testSplitEvents},
		{"a ledger made at one is used at the others", testSplitLedger},
		{"every list is the same at all", testSameLists},
		{"the parts of a message that came to several are joined once", testSplitParts},
		{"an Idempotency-Key is one order at all", testSplitKey},
		{"what came to several is counted once", testSplitDuplicates},
		{"a gateway that is killed loses nothing", testKilledMember},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, s)
		})
	}
}

// customer sends requests of acme to a gateway, as the SIM and message interfaces
// want it.
func customer(g *gateway) caller { return g.cellular("acme-all-0123456") }

// carrierOf sends requests of a carrier or network server of acme.
func carrierOf(g *gateway) caller { return g.as("acme-all-0123456") }

// taken fails the test unless every answer is a 200.
func taken(t *testing.T, answers []answer) {
	t.Helper()
	for _, a := range answers {
		a.mentions(t, http.StatusOK)
	}
}

// currentTimeSpan is the period of a report or a file of records.
func currentTimeSpan() string {
	return fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, time.Now().AddDate(0, 0, -1).Format(time.RFC3339), time.Now().AddDate(0, 0, 1).Format(time.RFC3339))
}

func testSplitUsage(t *testing.T, s *site) {
	c := startCluster(t, s, usageInventory("https://127.0.0.1:9/"))
	carrierOf(c.all[0]).post("/inbound/cdr/sim", used("a1", simA, 100)+used("a2", simB, 20)).mentions(t, 200, `"records":2`)
	carrierOf(c.all[1]).post("/inbound/cdr/sim", used("b1", simA, 1000)+used("b2", simC, 7)).mentions(t, 200, `"records":2`)
	c.front.settled()
	third := customer(c.all[2])
	id := third.ordered("/v3/mno/job/usage", currentTimeSpan())
	third.finished(id, "completed")
	report := third.get("/v3/mno/job/" + id + "/usage")
	for iccid, bytes := range map[string]int{simA: 1100, simB: 20, simC: 7} {
		if got := reportedUsage(t, report)[iccid]; got != bytes {
			t.Errorf("SIM %s used %d bytes, want %d", iccid, got, bytes)
		}
	}
	for _, g := range c.all {
		customer(g).get("/v3/mno/job/"+id+"/usage").is(t, 200, report.body)
	}
}

// reportedUsage reads the bytes of each SIM from a usage report.
func reportedUsage(t *testing.T, a answer) map[string]int {
	t.Helper()
	var report struct {
		Data []struct {
			ICCID string
			Usage int
		}
	}
	a.into(t, &report)
	out := map[string]int{}
	for _, row := range report.Data {
		out[row.ICCID] += row.Usage
	}
	return out
}

func testSplitLimit(t *testing.T, s *site) {
	told := newEars(t)
	c := startCluster(t, s, usageInventory(told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	customer(c.all[0]).put("/v3/mno/"+simA+"/usage-limit", `{"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit":"block"}`).mentions(t, 200, "block")
	post := func(name string, bytes int) {
		taken(t, c.everywhere("/inbound/cdr/sim", carrierOf, func(n int) string { return used(fmt.Sprint(name, n), simA, bytes) }))
		c.front.settled()
	}
	post("under", 266)
	if got := told.said(); len(got) > 0 {
		t.Errorf("798 of 800 bytes were used, and the callback hears %q", got)
	}
	post("near", 1)
	told.hears(t, "usage.limit_warning "+simA)
	post("over", 100)
	want := []string{"usage.limit_warning " + simA, "usage.limit_reached " + simA, "sim.state_changed " + simA + " suspended"}
	told.hears(t, want...)
	post("after", 1)
	told.hears(t, want...)
	for _, g := range c.all {
		customer(g).get("/v3/mno/"+simA).mentions(t, 200, `"current_state":"suspended"`)
	}
	if all := c.front.deliveries("q=usage.limit_reached"); len(all) > 1 {
		t.Errorf("the limit was told of in %d deliveries", len(all))
	}
}

// callRecord is a call of November, as a switch posts it.
func callRecord(id string) string {
	return `{"id":"` + id + `","start":"2026-11-20T09:34:15Z","from":"447700900123","to":"447860000001"}`
}

func testSplitArchive(t *testing.T, s *site) {
	c := startCluster(t, s, fixture(t, "contract.yaml"))
	taken(t, c.everywhere("/inbound/cdr/sip", carrierOf, func(n int) string { return callRecord(fmt.Sprint("call-", n)) }))
	c.front.settled()
	handle := customer(c.all[0]).order(november)
	want := customer(c.all[0]).archive(handle)
	if rows := want["cdr-20261101-20261130.csv"]; len(rows) != members {
		t.Fatalf("the archive holds %q, want %d calls", want, members)
	}
	first := customer(c.all[0]).get("/v2/sip/cdr/" + handle + "/download").body
	for _, g := range c.all[1:] {
		if got := customer(g).get("/v2/sip/cdr/" + handle + "/download"); got.status != 200 || got.body != first {
			t.Errorf("%s: %d, another archive of %d bytes", got.of, got.status, len(got.body))
		}
	}
}

func testSplitLedger(t *testing.T, s *site) {
	told := newCallbacks(t)
	c := startCluster(t, s, fixture(t, "ledgers.yaml", "CALLBACK", told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	first, second, third := carrierOf(c.all[0]), carrierOf(c.all[1]), carrierOf(c.all[2])
	var ledgers []struct{ Name, Hash string }
	third.get("/ledgers").into(t, &ledgers)
	var job string
	first.post("/ledgers/assets/tokens", `{"metadata":{"a":1},"private_metadata":{"owner":"x"}}`).into(t, &job)
	var made struct{ Data struct{ Token string } }
	c.all[1].jobDone(second, job, &made)
	token := `{"token":"` + made.Data.Token + `"}`
	second.post("/ledgers/tokens/metadata", `{"token":"`+made.Data.Token+`","metadata":{"place":"yard"}}`).mentions(t, 200)
	var jobs []string
	for range 2 {
		for _, a := range c.everywhere("/ledgers/tokens/claim", carrierOf, func(int) string { return token }) {
			var claimed struct{ JobID string }
			a.into(t, &claimed)
			jobs = append(jobs, claimed.JobID)
		}
	}
	for n, id := range jobs {
		c.all[n%members].jobDone(carrierOf(c.all[n%members]), id, nil)
	}
	history := third.get("/ledgers/tokens/" + made.Data.Token + "/history").body
	if n := strings.Count(history, `"claimed"`); n != 3 {
		t.Errorf("a token with 3 claims was claimed %d times:\n%s", n, history)
	}
	eventually(t, "every claim is told of", func() (any, bool) {
		jobs, claims, unsigned := told.told()
		return []int{jobs, claims, unsigned}, claims == 3 && unsigned == 0
	})
	export := first.get("/ledgers/" + ledgers[0].Hash + "/export").body
	for _, g := range c.all {
		g.as("acme-all-0123456").get("/ledgers/"+ledgers[0].Hash+"/export").is(t, 200, export)
	}
}

// testSameLists makes one of everything behind the balancer and reads it at each
// gateway: with every GET that the contract is tested with, and the operator's.
func testSameLists(t *testing.T, s *site) {
	c := startCluster(t, s, fixture(t, "contract.yaml", "https://example.com/callback", "http://127.0.0.1:9/callback"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	doc := contract(t)
	made := c.front.inhabit()
	c.front.settled()
	all := slices.DeleteFunc(samples(made), func(s sample) bool { return !ofAccounts(doc, s.operation) })
	want := c.all[0].own(all)
	for _, g := range c.all[1:] {
		for target, body := range g.own(all) {
			if body != want[target] {
				t.Errorf("%s at the first gateway:\n%s\nat another:\n%s", target, want[target], body)
			}
		}
	}
	for _, target := range []string{
		"/admin/events", "/admin/events?kind=uplink&limit=2", "/admin/deliveries", "/admin/messages?account=1", "/admin/credit?account=1", "/admin/inventory",
		"/admin/breakers", "/admin/decoders/sent", "/admin/events/" + made.message,
	} {
		eventually(t, target+" is the same at all gateways", func() (any, bool) { // retries go on
			var bodies []string
			for _, g := range c.all {
				bodies = append(bodies, g.admin().get(target).body)
			}
			return bodies, len(slices.Compact(slices.Clone(bodies))) == 1
		})
	}
	c.all[2].admin().get("/admin/gateways").mentions(t, 200, c.all[0].url(), c.all[1].url(), c.all[2].url())
}

func testRevoked(t *testing.T, s *site) {
	c := startCluster(t, s, usageInventory("https://127.0.0.1:9/"))
	for _, g := range c.all {
		g.cellular("globex-token-0123456").get("/v3/mno").mentions(t, 200, simG)
		g.as("globex-token-0123456").post("/inbound/cdr/sim", used("x", simG, 1)).mentions(t, 200)
	}
	c.all[0].admin().put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"globex","tokens":[{"token":"globex-2-0123456","scopes":["cellular","carrier"]}]}]}`).mentions(t, 200)
	revoked := time.Now()
	for _, g := range c.all {
		eventually(t, "the token is refused", func() (any, bool) {
			a := g.cellular("globex-token-0123456").get("/v3/mno")
			return a, a.status == http.StatusUnauthorized
		})
		if took := time.Since(revoked); took > 2*time.Second {
			t.Errorf("refused after %s", took)
		}
		g.as("globex-token-0123456").post("/inbound/cdr/sim", used("y", simG, 1)).mentions(t, 401)
		g.as("globex-2-0123456").post("/inbound/cdr/sim", used("z", simG, 1)).mentions(t, 200)
	}
}

func testSplitParts(t *testing.T, s *site) {
	k := newSink(t, nil)
	c := startCluster(t, s, fixture(t, "relays.yaml", "SINK", k.url, "MAILBOX", s.mailbox()))
	const count = 10
	for ref := range count {
		taken(t, c.everywhere("/inbound/sms/json", carrierOf, func(n int) string {
			body, err := json.Marshal(map[string]any{
				"id": fmt.Sprintf("m%d-%d", ref, n), "from": "447700900123", "to": "447800019999", "text": fmt.Sprintf("%d%c ", ref, 'a'+n),
				"udh": fmt.Sprintf("050003%02x%02x%02x", ref, members, n+1),
			})
			must(t, err)
			return string(body)
		}))
	}
	c.front.settled()
	k.await(t, "/vmn", count)
	eventually(t, "every message is delivered", func() (any, bool) {
		all := c.all[1].deliveries("relay=v-get&state=delivered")
		return all, len(all) == count
	})
	var got, want []string
	for _, h := range k.at("/vmn") {
		got = append(got, h.query.Get("msg"))
	}
	for ref := range count {
		want = append(want, fmt.Sprintf("%da %db %dc ", ref, ref, ref))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%q were delivered, want %q", got, want)
	}
}

func testSplitKey(t *testing.T, s *site) {
	c := startCluster(t, s, "accounts: [{name: acme, credit: 100, tokens: [{token: acme-all-0123456}]}]")
	body := later24(`"message":"once"`)
	first := customer(c.all[0]).with("Idempotency-Key", "k1").post("/v2/sms/send", body)
	again := customer(c.all[1]).with("Idempotency-Key", "k1").post("/v2/sms/send", body)
	if first.status != 200 || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("at A %d %s\nat B %d %s", first.status, first.body, again.status, again.body)
	}
	const rounds = 10
	for round := range rounds {
		key := fmt.Sprint("race-", round)
		answers := c.everywhere("/v2/sms/send", func(g *gateway) caller { return customer(g).with("Idempotency-Key", key) }, func(int) string { return body })
		taken(t, answers)
		fresh := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.header.Get("Idempotency-Replayed") == "true" })
		if len(fresh) != 1 || answers[0].body != answers[1].body || answers[0].body != answers[2].body {
			t.Errorf("%d new orders under one key: %+v", len(fresh), answers)
		}
	}
	for _, g := range c.all {
		var list struct{ Data []struct{ ID int64 } }
		g.admin().get("/admin/messages?account=1&limit=1000").into(t, &list)
		if len(list.Data) != 1+rounds {
			t.Errorf("%d messages, want %d", len(list.Data), 1+rounds)
		}
		same(t, "the balance", fmt.Sprint(g.ledger(t, 1).Meta.Balance), fmt.Sprint(100-1-rounds))
	}
}

func testSplitDuplicates(t *testing.T, s *site) {
	k := newSink(t, nil)
	inventory := usageInventory("https://127.0.0.1:9/") + fmt.Sprintf(`
  - name: initech
    tokens: [{token: initech-all-0123456, scopes: [messaging, carrier]}]
    relays: {geo: [{id: g-all, prefix: "4478", action: http_get, parameters: ["%s/in?m=%%m"]}]}
`, k.url)
	c := startCluster(t, s, inventory)
	initech := func(g *gateway) caller { return g.as("initech-all-0123456") }
	const count = 10
	for n := range count {
		taken(t, c.everywhere("/inbound/cdr/sim", carrierOf, func(int) string { return used(fmt.Sprint("u", n), simA, 100) }))
		taken(t, c.everywhere("/inbound/cdr/sip", initech, func(int) string { return callRecord(fmt.Sprint("c", n)) }))
		taken(t, c.everywhere("/inbound/sms/json", initech, func(int) string {
			return fmt.Sprintf(`{"id":"m%d","from":"447700900123","to":"447800012345","text":"text %d"}`, n, n)
		}))
	}
	c.front.settled()
	acme, voice := customer(c.all[2]), c.all[1].cellular("initech-all-0123456")
	report, file := acme.ordered("/v3/mno/job/usage", currentTimeSpan()), acme.ordered("/v3/mno/job/cdr", currentTimeSpan())
	acme.finished(report, "completed")
	acme.finished(file, "completed")
	same(t, "the bytes of the SIM", fmt.Sprint(reportedUsage(t, acme.get("/v3/mno/job/"+report+"/usage"))[simA]), fmt.Sprint(100*count))
	same(t, "lines of the file of records", fmt.Sprint(strings.Count(acme.get("/v3/mno/job/"+file+"/cdr/stream").body, "\n")), fmt.Sprint(1+count))
	same(t, "rows of the archive", fmt.Sprint(len(voice.archive(voice.order(november))["cdr-20261101-20261130.csv"])), fmt.Sprint(count))
	eventually(t, "every message is delivered", func() (any, bool) {
		all := c.front.deliveries("relay=g-all")
		return all, len(all) == count && !slices.ContainsFunc(all, func(p parcel) bool { return p.State != "delivered" })
	})
	same(t, "messages that arrived", fmt.Sprint(len(k.at("/in"))), fmt.Sprint(count))
}

func testKilledMember(t *testing.T, s *site) {
	c2, url := newTally(t)
	c := newCluster(t, s, fixture(t, "load.yaml", "SINK", url))
	c.spawn()
	l := c.front.lightLoad()
	acknowledged := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.texts) }
	for round := range 2 {
		for _, more := range []func(){c.all[round].kill, c.all[round].spawn} {
			after := acknowledged() + 50
			eventually(t, "more messages are acknowledged", func() (any, bool) { n := acknowledged(); return n, n >= after })
			more()
		}
	}
	after := acknowledged() + 50
	eventually(t, "more messages are acknowledged", func() (any, bool) { n := acknowledged(); return n, n >= after })
	l.end()
	l.check(t, c2)
	for _, g := range c.all {
		if code := g.terminate(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// lightLoad is load with two connections instead of eight.
func (g *gateway) lightLoad() *load {
	l := &load{
		g: g, from: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), quit: make(chan struct{}),
		frames: map[string]map[string]float64{}, texts: map[string]bool{}, refused: map[string]int{},
	}
	body := fixture(g.t, "chirpstack/up.json")
	l.work.Go(func() { l.repeat(func(n int) { l.frame(body, 0, n) }) })
	l.work.Go(func() { l.repeat(func(n int) { l.message(0, n) }) })
	return l
}
