// Package sims tests SIM jobs, usage and call records end to end.
package sims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"usage": testUsage,
	})
}

// postTwice posts records twice, as an operator does after a lost answer.
func postTwice(c e2e.Client, records ...string) {
	c.Gateway.T.Helper()
	for range 2 {
		c.Post("/inbound/cdr/sim", strings.Join(records, "")).Mentions(c.Gateway.T, 200, fmt.Sprintf(`"records":%d,"refused":0`, len(records)))
	}
	c.Gateway.AwaitProcessed()
}

// TestUsageLimitsSuspendSIMs posts records up to the limits of SIMs and of a pool, kills the gateway
// between the posts and replays the records.
func TestUsageLimitsSuspendSIMs(t *testing.T) {
	t.Parallel()
	e2e.OnRealSite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		callback, mailbox := e2e.NewEventCallback(t), s.Mailbox()
		g := e2e.NewGateway(t, s, e2e.UsageInventory(callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.Spawn()
		acme := e2e.CustomerOf(g)
		acme.Put("/v3/mno/"+e2e.SIMA+"/usage-limit", `{"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit":"block"}`).Mentions(t, 200, `"cap_limit_type":"block"`)
		acme.Post("/v3/mno/"+e2e.SIMA+"/recipient", `{"email":"`+mailbox+`"}`).Mentions(t, 201, mailbox)
		pool := acme.Create("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":5000,"cap_limit":"block"}`)
		acme.Post("/v3/mno/pool/"+pool+"/iccid", fmt.Sprintf(`{"iccids":[%q,%q]}`, e2e.SIMA, e2e.SIMB)).Mentions(t, 201, "true")

		postTwice(acme, e2e.UsageRecord("a1", e2e.SIMA, 799), e2e.UsageRecord("c1", e2e.SIMC, 1<<40))
		postTwice(acme, e2e.UsageRecord("a2", e2e.SIMA, 1))
		want := []string{"usage.limit_warning " + e2e.SIMA}
		callback.AwaitExactly(t, want...)
		g.Kill()
		g.Spawn()
		postTwice(acme, e2e.UsageRecord("a2", e2e.SIMA, 1), e2e.UsageRecord("a3", e2e.SIMA, 199))
		callback.AwaitExactly(t, want...)
		postTwice(acme, e2e.UsageRecord("a4", e2e.SIMA, 1))
		want = append(want, "usage.limit_reached "+e2e.SIMA, "sim.state_changed "+e2e.SIMA+" suspended")
		callback.AwaitExactly(t, want...)
		acme.Get("/v3/mno/"+e2e.SIMA).Mentions(t, 200, `"current_state":"suspended"`)
		g.Kill()
		g.Spawn()
		postTwice(acme, e2e.UsageRecord("b1", e2e.SIMB, 4000))
		want = append(want, "usage.limit_reached "+pool, "sim.state_changed "+e2e.SIMB+" suspended")
		callback.AwaitExactly(t, want...)

		g.Admin().Post("/admin/events/replay", `{"kind":"cdr"}`).Mentions(t, 200, "count")
		g.AwaitProcessed()
		postTwice(acme, e2e.UsageRecord("a5", e2e.SIMA, 9000))
		callback.AwaitExactly(t, want...)
		relaytest.Eventually(t, "the recipient has two mails", func() (any, bool) { m := g.Mails(mailbox); return m, len(m) == 2 })
		g.AwaitMail(mailbox, "SIM "+e2e.SIMA+" is near its monthly limit")
		g.AwaitMail(mailbox, "SIM "+e2e.SIMA+" has reached its monthly limit")
		acme.Get("/v3/mno/"+e2e.SIMC).Mentions(t, 200, `"current_state":"active"`)
		g.TerminateCleanly()
	})
}

// awaitState waits until a SIM is in a state and has no job in progress.
func awaitState(c e2e.Client, iccid, state string) {
	c.Gateway.T.Helper()
	relaytest.Eventually(c.Gateway.T, iccid+" is "+state, func() (any, bool) {
		got := c.Get("/v3/mno/" + iccid)
		return got.Body, strings.Contains(got.Body, fmt.Sprintf(`"current_state":%q,"requested_state":%q`, state, state))
	})
}

// TestBlockingLimitAlwaysSuspends reaches limits in every way. Each time the SIMs are suspended, even
// repeatedly within a month, and each limit is reported once.
func TestBlockingLimitAlwaysSuspends(t *testing.T) {
	t.Parallel()
	e2e.OnEmbeddedSite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		callback := e2e.NewEventCallback(t)
		const pending = "8944500000000000104"
		doc := strings.Replace(e2e.UsageInventory(callback.URL), `sims: [`, fmt.Sprintf(`sims: [{iccid: %q, current_state: pending}, `, pending), 1)
		g := e2e.NewGateway(t, s, doc, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.Spawn()
		acme := e2e.CustomerOf(g)
		limit := func(iccid string, bytes int) {
			acme.Put("/v3/mno/"+iccid+"/usage-limit", fmt.Sprintf(`{"monthly_usage_limit":%d,"cap_limit":"block"}`, bytes)).Mentions(t, 200, `"block"`)
		}
		unsuspend := func(iccid string) {
			acme.CompleteJob("/v3/mno/"+iccid+"/unsuspend", "{}")
		}

		limit(e2e.SIMA, 100)
		postTwice(acme, e2e.UsageRecord("a1", e2e.SIMA, 100))
		awaitState(acme, e2e.SIMA, "suspended")
		limit(e2e.SIMA, 200) // the limit is raised and reached again
		unsuspend(e2e.SIMA)
		awaitState(acme, e2e.SIMA, "active")
		postTwice(acme, e2e.UsageRecord("a2", e2e.SIMA, 100))
		awaitState(acme, e2e.SIMA, "suspended")
		unsuspend(e2e.SIMA) // while the usage is at the limit
		awaitState(acme, e2e.SIMA, "suspended")
		limit(e2e.SIMA, 300)
		unsuspend(e2e.SIMA)
		awaitState(acme, e2e.SIMA, "active")
		limit(e2e.SIMA, 150) // the limit is lowered below the usage
		awaitState(acme, e2e.SIMA, "suspended")
		g.Apply("?reset=sims", doc) // the reset makes the SIM active
		awaitState(acme, e2e.SIMA, "suspended")

		pool := acme.Create("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":100,"cap_limit":"block"}`)
		attach := func(iccids ...string) {
			acme.Post("/v3/mno/pool/"+pool+"/iccid", fmt.Sprintf(`{"iccids":["%s"]}`, strings.Join(iccids, `","`))).Mentions(t, 201, "true")
		}
		attach(e2e.SIMB, pending)
		postTwice(acme, e2e.UsageRecord("b1", e2e.SIMB, 100))
		awaitState(acme, e2e.SIMB, "suspended")
		attach(e2e.SIMC) // the pool has reached its limit
		awaitState(acme, e2e.SIMC, "suspended")
		acme.CompleteJob("/v3/mno/"+pending+"/activate", `{"subscriber":{"forename":"Ann"}}`)
		awaitState(acme, pending, "suspended")
		acme.Put("/v3/mno/pool/"+pool, `{"monthly_usage_limit":150}`).Mentions(t, 200, "150")
		unsuspend(e2e.SIMB)
		unsuspend(e2e.SIMC)
		awaitState(acme, e2e.SIMB, "active")
		postTwice(acme, e2e.UsageRecord("c1", e2e.SIMC, 50)) // SIMB is suspended because of the pool's usage
		awaitState(acme, e2e.SIMB, "suspended")
		awaitState(acme, e2e.SIMC, "suspended")
		relaytest.Eventually(t, "each limit is notified once", func() (any, bool) {
			var reached []string
			for _, event := range callback.Received() {
				if strings.HasPrefix(event, "usage.") {
					reached = append(reached, event)
				}
			}
			want := []string{"usage.limit_reached " + e2e.SIMA, "usage.limit_reached " + pool}
			slices.Sort(want)
			return reached, slices.Equal(reached, want)
		})
	})
}

// TestKilledGatewayCountsEveryRecordOnce kills the gateway while records are posted. Every acknowledged
// record is in the file and in the report once, and each reached limit is reported once.
func TestKilledGatewayCountsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	random := e2e.Random(t)
	callback := e2e.NewEventCallback(t)
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.UsageInventory(callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g.Spawn()
	acme, mailbox := e2e.CustomerOf(g), "box@example.com"
	acme.Put("/v3/mno/"+e2e.SIMA+"/usage-limit", `{"monthly_usage_limit":60,"monthly_usage_limit_warning":20,"cap_limit":"block"}`).Mentions(t, 200, "block")
	acme.Post("/v3/mno/"+e2e.SIMA+"/recipient", `{"email":"`+mailbox+`"}`).Mentions(t, 201, mailbox)
	acknowledged := make(map[string]bool)
	for n := range e2e.Rounds(t, "PENSTOCK_TEST_USAGE_KILLS", 2, 20) {
		callUntilKilled(g, random, func(i int) error {
			id := fmt.Sprintf("k%d-%d", n, i)
			resp, err := acme.Try("POST", "/inbound/cdr/sim", e2e.UsageRecord(id, e2e.SIMA, 1))
			acknowledged[id] = acknowledged[id] || err == nil && resp.Status == 200
			return err
		})
	}
	for i := range 60 { // reaches the limits after any number of acknowledged records
		acme.Post("/inbound/cdr/sim", e2e.UsageRecord(fmt.Sprint("end-", i), e2e.SIMA, 1)).Mentions(t, 200, "records")
		acknowledged[fmt.Sprint("end-", i)] = true
	}
	g.AwaitProcessed()
	callback.AwaitExactly(t, "usage.limit_warning "+e2e.SIMA, "usage.limit_reached "+e2e.SIMA, "sim.state_changed "+e2e.SIMA+" suspended")
	relaytest.Eventually(t, "the recipient has two mails", func() (any, bool) { m := g.Mails(mailbox); return len(m), len(m) == 2 })
	file, report := acme.CompleteJob("/v3/mno/job/cdr", e2e.CurrentPeriod()), acme.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	counts := make(map[string]int)
	for _, row := range strings.Split(strings.TrimSpace(acme.Get("/v3/mno/job/"+file+"/cdr/stream").Body), "\n")[1:] {
		id, _, _ := strings.Cut(row, ",")
		counts[id]++
	}
	for id := range acknowledged {
		if acknowledged[id] && counts[id] != 1 {
			t.Errorf("rows of %s in the file = %d, want 1", id, counts[id])
		}
	}
	acme.Get("/v3/mno/job/"+report+"/usage").Mentions(t, 200, fmt.Sprintf(`"usage":%d,`, len(counts)))
	g.TerminateCleanly()
}

// callUntilKilled runs call until it fails, because the gateway is killed after 11 to 50 calls, and
// starts the gateway again.
func callUntilKilled(g *e2e.Gateway, random *rand.Rand, call func(i int) error) {
	g.T.Helper()
	killAfter, killed := 10+random.IntN(40), make(chan struct{})
	kill := sync.OnceFunc(func() { go func() { g.Kill(); close(killed) }() })
	for i := 0; call(i) == nil; i++ {
		if i == killAfter {
			kill()
		}
	}
	kill()
	<-killed
	g.Spawn()
}

// testUsage checks the usage that an account reads, and that another account cannot read it.
func testUsage(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.UsageInventory("https://example.com/"))
	acme, globex := e2e.CustomerOf(g), g.XAuth("globex-token-0123456")
	subscriber := acme.Create("/v3/mno/subscriber/register", `{"forename":"Ann","surname":"Ray","address":"1 High St","post_code":"N1","contact_no":"1","company_name":"Rays"}`)
	acme.CompleteJob("/v3/mno/sim/bulk-reassign", fmt.Sprintf(`{"target_subscriber":%q,"iccids":[%q]}`, subscriber, e2e.SIMB))
	const csv = "id,iccid,start_time,type,bytes,duration\n" +
		"u2," + e2e.SIMB + ",2026-11-02T00:00:00.25Z,data,20,2\n=u1," + e2e.SIMA + ",2026-11-01T01:00:00+01:00,sms,,\nu3," + e2e.SIMB + ",2026-11-03T00:00:00Z,voice,0,75\n"
	acme.With("Content-Type", "text/csv").Post("/inbound/cdr/sim", csv).Mentions(t, 200, `"records":3`)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("x", e2e.SIMG, 1)).Mentions(t, 200, `"records":1`)
	g.AwaitProcessed()
	var reasons []string
	for _, event := range g.Events("kind=cdr&state=quarantined") {
		reasons = append(reasons, event.Reason)
	}
	relaytest.Equal(t, "the reasons of quarantined events", reasons, []string{`record "x": the account has no SIM ` + e2e.SIMG})
	const november = `{"start_time":"2026-11-01T00:00:00Z","end_time":"2026-11-03T00:00:01+00:00"`
	const (
		header    = "id,iccid,start_time,type,bytes,duration\n"
		firstRow  = "'=u1," + e2e.SIMA + ",2026-11-01T00:00:00Z,sms,0,0\n"
		otherRows = "u2," + e2e.SIMB + ",2026-11-02T00:00:00.25Z,data,20,2\nu3," + e2e.SIMB + ",2026-11-03T00:00:00Z,voice,0,75\n"
	)
	for body, want := range map[string]string{november + "}": header + firstRow + otherRows, november + `,"subscriber_id":"` + subscriber + `"}`: header + otherRows} {
		id := acme.CompleteJob("/v3/mno/job/cdr", body)
		acme.Get("/v3/mno/job/"+id+"/cdr/stream").Expect(t, 200, want)
		globex.Get("/v3/mno/job/"+id+"/cdr/stream").Expect(t, 404, `{"success":false,"message":"File not found."}`)
		acme.Get("/v3/mno/job/"+id+"/usage").Expect(t, 404, `{"success":false,"message":"Invalid job."}`)
	}
	file := acme.CompleteJob("/v3/mno/job/cdr", november+"}") // records from a file add nothing if they are posted again
	acme.With("Content-Type", "text/csv").Post("/inbound/cdr/sim", acme.Get("/v3/mno/job/"+file+"/cdr/stream").Body).Mentions(t, 200, `"records":3`)
	g.AwaitProcessed()
	file = acme.CompleteJob("/v3/mno/job/cdr", november+"}")
	acme.Get("/v3/mno/job/"+file+"/cdr/stream").Expect(t, 200, header+firstRow+otherRows)
	id := acme.CompleteJob("/v3/mno/job/usage", november+`,"name":"Early November"}`)
	row := func(iccid, subscriber, company string, bytes int) string {
		return fmt.Sprintf(`{"iccid":%q,"subscriber_id":%q,"subscriber_company_name":%q,"start_date":"2026-11-01T00:00:00.000000Z","end_date":"2026-11-03T00:00:01.000000Z","usage":%d,"unit":"bytes"}`, iccid, subscriber, company, bytes)
	}
	acme.Get("/v3/mno/job/"+id+"/usage?per_page=1&page=2").Expect(t, 200, `{"success":true,"message":"Usage report found.","data":[`+row(e2e.SIMB, subscriber, "Rays", 20)+
		`],"meta":{"current_page":2,"last_page":2,"per_page":1,"total":2,"count":1}}`)
	acme.Get("/v3/mno/job/"+id+"/usage").Mentions(t, 200, row(e2e.SIMA, "", "", 0))
	globex.Get("/v3/mno/job/"+id+"/usage").Expect(t, 404, `{"success":false,"message":"Invalid job."}`)
	acme.Get("/v3/mno/job?name=Early%20November").Mentions(t, 200, id, `"action":"usage_report"`)
	globex.Post("/v3/mno/job/cdr", november+"}").Expect(t, 404, `{"success":false,"message":"No CDR records found for the given period."}`)
	empty := globex.CompleteJob("/v3/mno/job/usage", november+"}")
	globex.Get("/v3/mno/job/"+empty+"/usage").Mentions(t, 200, `"data":[]`, `"total":0`)
	globex.Post("/v3/mno/job/cdr", november+`,"subscriber_id":"`+subscriber+`"}`).Expect(t, 422,
		`{"message":"The given data was invalid.","errors":{"subscriber_id":["The selected subscriber id is invalid."]}}`)
}
