package sims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// meters posts records, twice, as operators do that think the first was lost.
func meters(c e2e.Client, records ...string) {
	c.Gateway.T.Helper()
	for range 2 {
		c.Post("/inbound/cdr/sim", strings.Join(records, "")).Mentions(c.Gateway.T, 200, fmt.Sprintf(`"records":%d,"refused":0`, len(records)))
	}
	c.Gateway.AwaitProcessed()
}

// TestLimitsFromRecordToSuspension counts records up to the limits of SIMs and a
// pool, kills the gateway in between and replays what was counted.
func TestLimitsFromRecordToSuspension(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		told, box := e2e.NewEventCallback(t), s.Mailbox()
		g := e2e.NewGateway(t, s, e2e.UsageInventory(told.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.Spawn()
		acme := g.As("acme-all-0123456").Cellular()
		acme.Put("/v3/mno/"+e2e.SIMA+"/usage-limit", `{"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit":"block"}`).Mentions(t, 200, `"cap_limit_type":"block"`)
		acme.Post("/v3/mno/"+e2e.SIMA+"/recipient", `{"email":"`+box+`"}`).Mentions(t, 201, box)
		var pool struct{ Data struct{ ID string } }
		acme.Post("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":5000,"cap_limit":"block"}`).Decode(t, &pool)
		acme.Post("/v3/mno/pool/"+pool.Data.ID+"/iccid", fmt.Sprintf(`{"iccids":[%q,%q]}`, e2e.SIMA, e2e.SIMB)).Mentions(t, 201, "true")

		meters(acme, e2e.UsageRecord("a1", e2e.SIMA, 799), e2e.UsageRecord("c1", e2e.SIMC, 1<<40))
		meters(acme, e2e.UsageRecord("a2", e2e.SIMA, 1))
		want := []string{"usage.limit_warning " + e2e.SIMA}
		told.AwaitExactly(t, want...)
		g.Kill()
		g.Spawn()
		meters(acme, e2e.UsageRecord("a2", e2e.SIMA, 1), e2e.UsageRecord("a3", e2e.SIMA, 199))
		told.AwaitExactly(t, want...)
		meters(acme, e2e.UsageRecord("a4", e2e.SIMA, 1))
		want = append(want, "usage.limit_reached "+e2e.SIMA, "sim.state_changed "+e2e.SIMA+" suspended")
		told.AwaitExactly(t, want...)
		acme.Get("/v3/mno/"+e2e.SIMA).Mentions(t, 200, `"current_state":"suspended"`)
		g.Kill()
		g.Spawn()
		meters(acme, e2e.UsageRecord("b1", e2e.SIMB, 4000))
		want = append(want, "usage.limit_reached "+pool.Data.ID, "sim.state_changed "+e2e.SIMB+" suspended")
		told.AwaitExactly(t, want...)

		g.Admin().Post("/admin/events/replay", `{"kind":"cdr"}`).Mentions(t, 200, "count")
		g.AwaitProcessed()
		meters(acme, e2e.UsageRecord("a5", e2e.SIMA, 9000))
		told.AwaitExactly(t, want...)
		relaytest.Eventually(t, "the recipient has two mails", func() (any, bool) { m := g.Mails(box); return m, len(m) == 2 })
		g.AwaitMail(box, "SIM "+e2e.SIMA+" is near its monthly limit")
		g.AwaitMail(box, "SIM "+e2e.SIMA+" has reached its monthly limit")
		acme.Get("/v3/mno/"+e2e.SIMC).Mentions(t, 200, `"current_state":"active"`)
		if code := g.Terminate(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// standsAt waits until a SIM is in a state and no job of it is under way.
func standsAt(c e2e.Client, iccid, state string) {
	c.Gateway.T.Helper()
	relaytest.Eventually(c.Gateway.T, iccid+" is "+state, func() (any, bool) {
		got := c.Get("/v3/mno/" + iccid)
		return got.Body, strings.Contains(got.Body, fmt.Sprintf(`"current_state":%q,"requested_state":%q`, state, state))
	})
}

// TestALimitThatBlocksHolds brings SIMs under limits that are reached in every way
// there is: each is suspended, again and again within the month, and told of once.
func TestALimitThatBlocksHolds(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		told := e2e.NewEventCallback(t)
		const pending = "8944500000000000104"
		doc := strings.Replace(e2e.UsageInventory(told.URL), `sims: [`, fmt.Sprintf(`sims: [{iccid: %q, current_state: pending}, `, pending), 1)
		g := e2e.NewGateway(t, s, doc, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.Spawn()
		acme := g.As("acme-all-0123456").Cellular()
		limit := func(iccid string, bytes int) {
			acme.Put("/v3/mno/"+iccid+"/usage-limit", fmt.Sprintf(`{"monthly_usage_limit":%d,"cap_limit":"block"}`, bytes)).Mentions(t, 200, `"block"`)
		}
		unsuspend := func(iccid string) {
			acme.AwaitJobStatus(acme.StartJob("/v3/mno/"+iccid+"/unsuspend", "{}"), "completed")
		}

		limit(e2e.SIMA, 100)
		meters(acme, e2e.UsageRecord("a1", e2e.SIMA, 100))
		standsAt(acme, e2e.SIMA, "suspended")
		limit(e2e.SIMA, 200) // raised, brought back, and reached again
		unsuspend(e2e.SIMA)
		standsAt(acme, e2e.SIMA, "active")
		meters(acme, e2e.UsageRecord("a2", e2e.SIMA, 100))
		standsAt(acme, e2e.SIMA, "suspended")
		unsuspend(e2e.SIMA) // while usage is at the limit
		standsAt(acme, e2e.SIMA, "suspended")
		limit(e2e.SIMA, 300)
		unsuspend(e2e.SIMA)
		standsAt(acme, e2e.SIMA, "active")
		limit(e2e.SIMA, 150) // lowered below what is used
		standsAt(acme, e2e.SIMA, "suspended")
		g.Apply("?reset=sims", doc) // in service again
		standsAt(acme, e2e.SIMA, "suspended")

		var pool struct{ Data struct{ ID string } }
		acme.Post("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":100,"cap_limit":"block"}`).Decode(t, &pool)
		attach := func(iccids ...string) {
			acme.Post("/v3/mno/pool/"+pool.Data.ID+"/iccid", fmt.Sprintf(`{"iccids":["%s"]}`, strings.Join(iccids, `","`))).Mentions(t, 201, "true")
		}
		attach(e2e.SIMB, pending)
		meters(acme, e2e.UsageRecord("b1", e2e.SIMB, 100))
		standsAt(acme, e2e.SIMB, "suspended")
		attach(e2e.SIMC) // to a pool that is blocked
		standsAt(acme, e2e.SIMC, "suspended")
		acme.AwaitJobStatus(acme.StartJob("/v3/mno/"+pending+"/activate", `{"subscriber":{"forename":"Ann"}}`), "completed")
		standsAt(acme, pending, "suspended")
		acme.Put("/v3/mno/pool/"+pool.Data.ID, `{"monthly_usage_limit":150}`).Mentions(t, 200, "150")
		unsuspend(e2e.SIMB)
		unsuspend(e2e.SIMC)
		standsAt(acme, e2e.SIMB, "active")
		meters(acme, e2e.UsageRecord("c1", e2e.SIMC, 50)) // which is all that simB notices
		standsAt(acme, e2e.SIMB, "suspended")
		standsAt(acme, e2e.SIMC, "suspended")
		relaytest.Eventually(t, "each limit is notified once", func() (any, bool) {
			var reached []string
			for _, one := range told.Received() {
				if strings.HasPrefix(one, "usage.") {
					reached = append(reached, one)
				}
			}
			want := []string{"usage.limit_reached " + e2e.SIMA, "usage.limit_reached " + pool.Data.ID}
			slices.Sort(want)
			return reached, slices.Equal(reached, want)
		})
	})
}

// TestKillsCountEveryRecordOnce kills the gateway while records are posted: each
// that was acknowledged is in the file and in the sum, once, and the limits that
// were crossed meanwhile are reported once.
func TestKillsCountEveryRecordOnce(t *testing.T) {
	t.Parallel()
	seed := e2e.NumberFromEnv(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("PENSTOCK_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	told := e2e.NewEventCallback(t)
	g := e2e.NewGateway(t, &e2e.Site{Name: "embedded"}, e2e.UsageInventory(told.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g.Spawn()
	acme, box := g.As("acme-all-0123456").Cellular(), "box@example.com"
	acme.Put("/v3/mno/"+e2e.SIMA+"/usage-limit", `{"monthly_usage_limit":60,"monthly_usage_limit_warning":20,"cap_limit":"block"}`).Mentions(t, 200, "block")
	acme.Post("/v3/mno/"+e2e.SIMA+"/recipient", `{"email":"`+box+`"}`).Mentions(t, 201, box)
	acknowledged := make(map[string]bool)
	for n := range e2e.NumberFromEnv(t, "PENSTOCK_TEST_USAGE_KILLS", 3) {
		stop := time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
		killed := make(chan struct{})
		go func() { <-stop; g.Kill(); close(killed) }()
		for i := 0; ; i++ {
			id := fmt.Sprintf("k%d-%d", n, i)
			a, err := acme.Try("POST", "/inbound/cdr/sim", e2e.UsageRecord(id, e2e.SIMA, 1))
			if err != nil {
				break
			}
			acknowledged[id] = acknowledged[id] || a.Status == 200
		}
		<-killed
		g.Spawn()
	}
	for i := range 60 { // so that the limits are crossed whatever was killed
		acme.Post("/inbound/cdr/sim", e2e.UsageRecord(fmt.Sprint("end-", i), e2e.SIMA, 1)).Mentions(t, 200, "records")
		acknowledged[fmt.Sprint("end-", i)] = true
	}
	g.AwaitProcessed()
	told.AwaitExactly(t, "usage.limit_warning "+e2e.SIMA, "usage.limit_reached "+e2e.SIMA, "sim.state_changed "+e2e.SIMA+" suspended")
	relaytest.Eventually(t, "the recipient has two mails", func() (any, bool) { m := g.Mails(box); return len(m), len(m) == 2 })
	body := fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, time.Now().AddDate(0, 0, -1).Format(time.RFC3339), time.Now().AddDate(0, 0, 1).Format(time.RFC3339))
	file, report := acme.StartJob("/v3/mno/job/cdr", body), acme.StartJob("/v3/mno/job/usage", body)
	acme.AwaitJobStatus(file, "completed")
	acme.AwaitJobStatus(report, "completed")
	found := make(map[string]int)
	for _, row := range strings.Split(strings.TrimSpace(acme.Get("/v3/mno/job/"+file+"/cdr/stream").Body), "\n")[1:] {
		id, _, _ := strings.Cut(row, ",")
		found[id]++
	}
	for id := range acknowledged {
		if acknowledged[id] && found[id] != 1 {
			t.Errorf("%s is there %d times", id, found[id])
		}
	}
	acme.Get("/v3/mno/job/"+report+"/usage").Mentions(t, 200, fmt.Sprintf(`"usage":%d,`, len(found)))
	if code := g.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// testUsage is what an account sees of its usage, and of another's.
func testUsage(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.UsageInventory("https://example.com/"))
	acme, globex := g.As("acme-all-0123456").Cellular(), g.As("").With("X-Auth-Token", "globex-token-0123456")
	var who struct{ Data struct{ ID string } }
	acme.Post("/v3/mno/subscriber/register", `{"forename":"Ann","surname":"Ray","address":"1 High St","post_code":"N1","contact_no":"1","company_name":"Rays"}`).Decode(t, &who)
	acme.AwaitJobStatus(acme.StartJob("/v3/mno/sim/bulk-reassign", fmt.Sprintf(`{"target_subscriber":%q,"iccids":[%q]}`, who.Data.ID, e2e.SIMB)), "completed")
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
		header = "id,iccid,start_time,type,bytes,duration\n"
		first  = "'=u1," + e2e.SIMA + ",2026-11-01T00:00:00Z,sms,0,0\n"
		others = "u2," + e2e.SIMB + ",2026-11-02T00:00:00.25Z,data,20,2\nu3," + e2e.SIMB + ",2026-11-03T00:00:00Z,voice,0,75\n"
	)
	for body, want := range map[string]string{november + "}": header + first + others, november + `,"subscriber_id":"` + who.Data.ID + `"}`: header + others} {
		id := acme.StartJob("/v3/mno/job/cdr", body)
		acme.AwaitJobStatus(id, "completed")
		acme.Get("/v3/mno/job/"+id+"/cdr/stream").Is(t, 200, want)
		globex.Get("/v3/mno/job/"+id+"/cdr/stream").Is(t, 404, `{"success":false,"message":"File not found."}`)
		acme.Get("/v3/mno/job/"+id+"/usage").Is(t, 404, `{"success":false,"message":"Invalid job."}`)
	}
	file := acme.StartJob("/v3/mno/job/cdr", november+"}") // a file that is posted back adds nothing
	acme.AwaitJobStatus(file, "completed")
	acme.With("Content-Type", "text/csv").Post("/inbound/cdr/sim", acme.Get("/v3/mno/job/"+file+"/cdr/stream").Body).Mentions(t, 200, `"records":3`)
	g.AwaitProcessed()
	file = acme.StartJob("/v3/mno/job/cdr", november+"}")
	acme.AwaitJobStatus(file, "completed")
	acme.Get("/v3/mno/job/"+file+"/cdr/stream").Is(t, 200, header+first+others)
	id := acme.StartJob("/v3/mno/job/usage", november+`,"name":"Early November"}`)
	acme.AwaitJobStatus(id, "completed")
	row := func(iccid, subscriber, company string, bytes int) string {
		return fmt.Sprintf(`{"iccid":%q,"subscriber_id":%q,"subscriber_company_name":%q,"start_date":"2026-11-01T00:00:00.000000Z","end_date":"2026-11-03T00:00:01.000000Z","usage":%d,"unit":"bytes"}`, iccid, subscriber, company, bytes)
	}
	acme.Get("/v3/mno/job/"+id+"/usage?per_page=1&page=2").Is(t, 200, `{"success":true,"message":"Usage report found.","data":[`+row(e2e.SIMB, who.Data.ID, "Rays", 20)+
		`],"meta":{"current_page":2,"last_page":2,"per_page":1,"total":2,"count":1}}`)
	acme.Get("/v3/mno/job/"+id+"/usage").Mentions(t, 200, row(e2e.SIMA, "", "", 0))
	globex.Get("/v3/mno/job/"+id+"/usage").Is(t, 404, `{"success":false,"message":"Invalid job."}`)
	acme.Get("/v3/mno/job?name=Early%20November").Mentions(t, 200, id, `"action":"usage_report"`)
	globex.Post("/v3/mno/job/cdr", november+"}").Is(t, 404, `{"success":false,"message":"No CDR records found for the given period."}`)
	empty := globex.StartJob("/v3/mno/job/usage", november+"}")
	globex.AwaitJobStatus(empty, "completed")
	globex.Get("/v3/mno/job/"+empty+"/usage").Mentions(t, 200, `"data":[]`, `"total":0`)
	globex.Post("/v3/mno/job/cdr", november+`,"subscriber_id":"`+who.Data.ID+`"}`).Is(t, 422,
		`{"message":"The given data was invalid.","errors":{"subscriber_id":["The selected subscriber id is invalid."]}}`)
}
