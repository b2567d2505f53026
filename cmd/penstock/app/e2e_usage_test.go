package app

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// ears is an account's callback URL: it keeps what it is told, if that is signed.
type ears struct {
	url string

	mu    sync.Mutex
	heard map[string]string // webhook-id → type and what it is about
}

func newEars(t *testing.T) *ears {
	t.Helper()
	key, err := webhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	e := &ears{heard: make(map[string]string)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var told struct {
			Type string
			Data struct {
				ICCID        string
				PoolID       string `json:"pool_id"`
				CurrentState string `json:"current_state"`
			}
		}
		if err := key.Verify(body, r.Header); err != nil || json.Unmarshal(body, &told) != nil {
			told.Type = "unsigned"
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard[r.Header.Get("Webhook-Id")] = strings.TrimSpace(told.Type + " " + told.Data.ICCID + told.Data.PoolID + " " + told.Data.CurrentState)
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// said lists what was heard, but for the words of jobs.
func (e *ears) said() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, one := range e.heard {
		if !strings.HasPrefix(one, "job.") {
			out = append(out, one)
		}
	}
	slices.Sort(out)
	return out
}

// The SIMs of the account acme, and one of globex.
const (
	simA, simB, simC = "8944500000000000101", "8944500000000000102", "8944500000000000103"
	simG             = "8944500000000000201"
)

func usageInventory(callback string) string {
	return fmt.Sprintf(`accounts:
  - name: acme
    tokens: [{token: acme-all-0123456, scopes: [cellular, carrier]}]
    webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    callback_url: %s
    sims: [{iccid: %q, current_state: active}, {iccid: %q, current_state: active}, {iccid: %q, current_state: active}]
  - {name: globex, tokens: [{token: globex-token-0123456, scopes: [cellular, carrier]}], sims: [{iccid: %q, current_state: active}]}`, callback, simA, simB, simC, simG)
}

// used is a record of what a SIM used now.
func used(id, iccid string, bytes int) string {
	return fmt.Sprintf(`{"id":%q,"iccid":%q,"start_time":%q,"type":"data","bytes":%d,"duration":60}`+"\n", id, iccid, time.Now().UTC().Format(time.RFC3339), bytes)
}

// meters posts records, twice, as operators do that think the first was lost.
func (c caller) meters(records ...string) {
	c.g.t.Helper()
	for range 2 {
		c.post("/inbound/cdr/sim", strings.Join(records, "")).mentions(c.g.t, 200, fmt.Sprintf(`"records":%d,"refused":0`, len(records)))
	}
	c.g.settled()
}

// hears waits until a callback was told exactly this.
func (e *ears) hears(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, "the callback hears", func() (any, bool) { got := e.said(); return got, slices.Equal(got, want) })
}

func (c caller) mno() caller {
	return c.with("Authorization", "").with("X-Auth-Token", "acme-all-0123456")
}

// TestLimitsFromRecordToSuspension counts records up to the limits of SIMs and a
// pool, kills the gateway in between and replays what was counted.
func TestLimitsFromRecordToSuspension(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		told, box := newEars(t), s.mailbox()
		g := newGateway(t, s, usageInventory(told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.spawn()
		acme := g.as("acme-all-0123456").mno()
		acme.put("/v3/mno/"+simA+"/usage-limit", `{"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit":"block"}`).mentions(t, 200, `"cap_limit_type":"block"`)
		acme.post("/v3/mno/"+simA+"/recipient", `{"email":"`+box+`"}`).mentions(t, 201, box)
		var pool struct{ Data struct{ ID string } }
		acme.post("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":5000,"cap_limit":"block"}`).into(t, &pool)
		acme.post("/v3/mno/pool/"+pool.Data.ID+"/iccid", fmt.Sprintf(`{"iccids":[%q,%q]}`, simA, simB)).mentions(t, 201, "true")

		acme.meters(used("a1", simA, 799), used("c1", simC, 1<<40))
		acme.meters(used("a2", simA, 1))
		want := []string{"usage.limit_warning " + simA}
		told.hears(t, want...)
		g.kill()
		g.spawn()
		acme.meters(used("a2", simA, 1), used("a3", simA, 199))
		told.hears(t, want...)
		acme.meters(used("a4", simA, 1))
		want = append(want, "usage.limit_reached "+simA, "sim.state_changed "+simA+" suspended")
		told.hears(t, want...)
		acme.get("/v3/mno/"+simA).mentions(t, 200, `"current_state":"suspended"`)
		g.kill()
		g.spawn()
		acme.meters(used("b1", simB, 4000))
		want = append(want, "usage.limit_reached "+pool.Data.ID, "sim.state_changed "+simB+" suspended")
		told.hears(t, want...)

		g.admin().post("/admin/events/replay", `{"kind":"cdr"}`).mentions(t, 200, "count")
		g.settled()
		acme.meters(used("a5", simA, 9000))
		told.hears(t, want...)
		eventually(t, "the recipient has two mails", func() (any, bool) { m := g.mails(box); return m, len(m) == 2 })
		g.awaitMail(box, "SIM "+simA+" is near its monthly limit")
		g.awaitMail(box, "SIM "+simA+" has reached its monthly limit")
		acme.get("/v3/mno/"+simC).mentions(t, 200, `"current_state":"active"`)
		if code := g.terminate(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// standsAt waits until a SIM is in a state and no job of it is under way.
func (c caller) standsAt(iccid, state string) {
	c.g.t.Helper()
	eventually(c.g.t, iccid+" is "+state, func() (any, bool) {
		got := c.get("/v3/mno/" + iccid)
		return got.body, strings.Contains(got.body, fmt.Sprintf(`"current_state":%q,"requested_state":%q`, state, state))
	})
}

// TestALimitThatBlocksHolds brings SIMs under limits that are reached in every way
// there is: each is suspended, again and again within the month, and told of once.
func TestALimitThatBlocksHolds(t *testing.T) {
	t.Parallel()
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		told := newEars(t)
		const pending = "8944500000000000104"
		doc := strings.Replace(usageInventory(told.url), `sims: [`, fmt.Sprintf(`sims: [{iccid: %q, current_state: pending}, `, pending), 1)
		g := newGateway(t, s, doc, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.spawn()
		acme := g.as("acme-all-0123456").mno()
		limit := func(iccid string, bytes int) {
			acme.put("/v3/mno/"+iccid+"/usage-limit", fmt.Sprintf(`{"monthly_usage_limit":%d,"cap_limit":"block"}`, bytes)).mentions(t, 200, `"block"`)
		}
		unsuspend := func(iccid string) { acme.finished(acme.ordered("/v3/mno/"+iccid+"/unsuspend", "{}"), "completed") }

		limit(simA, 100)
		acme.meters(used("a1", simA, 100))
		acme.standsAt(simA, "suspended")
		limit(simA, 200) // raised, brought back, and reached again
		unsuspend(simA)
		acme.standsAt(simA, "active")
		acme.meters(used("a2", simA, 100))
		acme.standsAt(simA, "suspended")
		unsuspend(simA) // while usage is at the limit
		acme.standsAt(simA, "suspended")
		limit(simA, 300)
		unsuspend(simA)
		acme.standsAt(simA, "active")
		limit(simA, 150) // lowered below what is used
		acme.standsAt(simA, "suspended")
		g.apply("?reset=sims", doc) // in service again
		acme.standsAt(simA, "suspended")

		var pool struct{ Data struct{ ID string } }
		acme.post("/v3/mno/pool", `{"name":"Vans","monthly_usage_limit":100,"cap_limit":"block"}`).into(t, &pool)
		attach := func(iccids ...string) {
			acme.post("/v3/mno/pool/"+pool.Data.ID+"/iccid", fmt.Sprintf(`{"iccids":["%s"]}`, strings.Join(iccids, `","`))).mentions(t, 201, "true")
		}
		attach(simB, pending)
		acme.meters(used("b1", simB, 100))
		acme.standsAt(simB, "suspended")
		attach(simC) // to a pool that is blocked
		acme.standsAt(simC, "suspended")
		acme.finished(acme.ordered("/v3/mno/"+pending+"/activate", `{"subscriber":{"forename":"Ann"}}`), "completed")
		acme.standsAt(pending, "suspended")
		acme.put("/v3/mno/pool/"+pool.Data.ID, `{"monthly_usage_limit":150}`).mentions(t, 200, "150")
		unsuspend(simB)
		unsuspend(simC)
		acme.standsAt(simB, "active")
		acme.meters(used("c1", simC, 50)) // which is all that simB notices
		acme.standsAt(simB, "suspended")
		acme.standsAt(simC, "suspended")
		eventually(t, "each limit is notified once", func() (any, bool) {
			var reached []string
			for _, one := range told.said() {
				if strings.HasPrefix(one, "usage.") {
					reached = append(reached, one)
				}
			}
			want := []string{"usage.limit_reached " + simA, "usage.limit_reached " + pool.Data.ID}
			slices.Sort(want)
			return reached, slices.Equal(reached, want)
		})
	})
}

// TestKillsCountEveryRecordOnce kills the gateway while records are posted: each
// that was acknowledged is in the file and in the sum, once, and the limits that
// were crossed meanwhile are told once.
func TestKillsCountEveryRecordOnce(t *testing.T) {
	t.Parallel()
	seed := numberFrom(t, "PENSTOCK_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("PENSTOCK_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	told := newEars(t)
	g := newGateway(t, &site{name: "embedded"}, usageInventory(told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g.spawn()
	acme, box := g.as("acme-all-0123456").mno(), "box@example.com"
	acme.put("/v3/mno/"+simA+"/usage-limit", `{"monthly_usage_limit":60,"monthly_usage_limit_warning":20,"cap_limit":"block"}`).mentions(t, 200, "block")
	acme.post("/v3/mno/"+simA+"/recipient", `{"email":"`+box+`"}`).mentions(t, 201, box)
	acknowledged := make(map[string]bool)
	for n := range numberFrom(t, "PENSTOCK_TEST_USAGE_KILLS", 3) {
		stop := time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
		killed := make(chan struct{})
		go func() { <-stop; g.kill(); close(killed) }()
		for i := 0; ; i++ {
			id := fmt.Sprintf("k%d-%d", n, i)
			a, err := acme.try("POST", "/inbound/cdr/sim", used(id, simA, 1))
			if err != nil {
				break
			}
			acknowledged[id] = acknowledged[id] || a.status == 200
		}
		<-killed
		g.spawn()
	}
	for i := range 60 { // so that the limits are crossed whatever was killed
		acme.post("/inbound/cdr/sim", used(fmt.Sprint("end-", i), simA, 1)).mentions(t, 200, "records")
		acknowledged[fmt.Sprint("end-", i)] = true
	}
	g.settled()
	told.hears(t, "usage.limit_warning "+simA, "usage.limit_reached "+simA, "sim.state_changed "+simA+" suspended")
	eventually(t, "the recipient has two mails", func() (any, bool) { m := g.mails(box); return len(m), len(m) == 2 })
	body := fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, time.Now().AddDate(0, 0, -1).Format(time.RFC3339), time.Now().AddDate(0, 0, 1).Format(time.RFC3339))
	file, report := acme.ordered("/v3/mno/job/cdr", body), acme.ordered("/v3/mno/job/usage", body)
	acme.finished(file, "completed")
	acme.finished(report, "completed")
	found := make(map[string]int)
	for _, row := range strings.Split(strings.TrimSpace(acme.get("/v3/mno/job/"+file+"/cdr/stream").body), "\n")[1:] {
		id, _, _ := strings.Cut(row, ",")
		found[id]++
	}
	for id := range acknowledged {
		if acknowledged[id] && found[id] != 1 {
			t.Errorf("%s is there %d times", id, found[id])
		}
	}
	acme.get("/v3/mno/job/"+report+"/usage").mentions(t, 200, fmt.Sprintf(`"usage":%d,`, len(found)))
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// testUsage is what an account sees of its usage, and of another's.
func testUsage(t *testing.T, s *site) {
	g := start(t, s, usageInventory("https://example.com/"))
	acme, globex := g.as("acme-all-0123456").mno(), g.as("").with("X-Auth-Token", "globex-token-0123456")
	var who struct{ Data struct{ ID string } }
	acme.post("/v3/mno/subscriber/register", `{"forename":"Ann","surname":"Ray","address":"1 High St","post_code":"N1","contact_no":"1","company_name":"Rays"}`).into(t, &who)
	acme.finished(acme.ordered("/v3/mno/sim/bulk-reassign", fmt.Sprintf(`{"target_subscriber":%q,"iccids":[%q]}`, who.Data.ID, simB)), "completed")
	const csv = "id,iccid,start_time,type,bytes,duration\n" +
		"u2," + simB + ",2026-11-02T00:00:00.25Z,data,20,2\n=u1," + simA + ",2026-11-01T01:00:00+01:00,sms,,\nu3," + simB + ",2026-11-03T00:00:00Z,voice,0,75\n"
	acme.with("Content-Type", "text/csv").post("/inbound/cdr/sim", csv).mentions(t, 200, `"records":3`)
	acme.post("/inbound/cdr/sim", used("x", simG, 1)).mentions(t, 200, `"records":1`)
	g.settled()
	if set := g.events("kind=cdr&state=quarantined"); len(set) != 1 || set[0].Reason != `record "x": the account has no SIM `+simG {
		t.Errorf("%+v", set)
	}
	const november = `{"start_time":"2026-11-01T00:00:00Z","end_time":"2026-11-03T00:00:01+00:00"`
	const (
		header = "id,iccid,start_time,type,bytes,duration\n"
		first  = "'=u1," + simA + ",2026-11-01T00:00:00Z,sms,0,0\n"
		others = "u2," + simB + ",2026-11-02T00:00:00.25Z,data,20,2\nu3," + simB + ",2026-11-03T00:00:00Z,voice,0,75\n"
	)
	for body, want := range map[string]string{november + "}": header + first + others, november + `,"subscriber_id":"` + who.Data.ID + `"}`: header + others} {
		id := acme.ordered("/v3/mno/job/cdr", body)
		acme.finished(id, "completed")
		acme.get("/v3/mno/job/"+id+"/cdr/stream").is(t, 200, want)
		globex.get("/v3/mno/job/"+id+"/cdr/stream").is(t, 404, `{"success":false,"message":"File not found."}`)
		acme.get("/v3/mno/job/"+id+"/usage").is(t, 404, `{"success":false,"message":"Invalid job."}`)
	}
	file := acme.ordered("/v3/mno/job/cdr", november+"}") // a file that is posted back adds nothing
	acme.finished(file, "completed")
	acme.with("Content-Type", "text/csv").post("/inbound/cdr/sim", acme.get("/v3/mno/job/"+file+"/cdr/stream").body).mentions(t, 200, `"records":3`)
	g.settled()
	file = acme.ordered("/v3/mno/job/cdr", november+"}")
	acme.finished(file, "completed")
	acme.get("/v3/mno/job/"+file+"/cdr/stream").is(t, 200, header+first+others)
	id := acme.ordered("/v3/mno/job/usage", november+`,"name":"Early November"}`)
	acme.finished(id, "completed")
	row := func(iccid, subscriber, company string, bytes int) string {
		return fmt.Sprintf(`{"iccid":%q,"subscriber_id":%q,"subscriber_company_name":%q,"start_date":"2026-11-01T00:00:00.000000Z","end_date":"2026-11-03T00:00:01.000000Z","usage":%d,"unit":"bytes"}`, iccid, subscriber, company, bytes)
	}
	acme.get("/v3/mno/job/"+id+"/usage?per_page=1&page=2").is(t, 200, `{"success":true,"message":"Usage report found.","data":[`+row(simB, who.Data.ID, "Rays", 20)+
		`],"meta":{"current_page":2,"last_page":2,"per_page":1,"total":2,"count":1}}`)
	acme.get("/v3/mno/job/"+id+"/usage").mentions(t, 200, row(simA, "", "", 0))
	globex.get("/v3/mno/job/"+id+"/usage").is(t, 404, `{"success":false,"message":"Invalid job."}`)
	acme.get("/v3/mno/job?name=Early%20November").mentions(t, 200, id, `"action":"usage_report"`)
	globex.post("/v3/mno/job/cdr", november+"}").is(t, 404, `{"success":false,"message":"No CDR records found for the given period."}`)
	empty := globex.ordered("/v3/mno/job/usage", november+"}")
	globex.finished(empty, "completed")
	globex.get("/v3/mno/job/"+empty+"/usage").mentions(t, 200, `"data":[]`, `"total":0`)
	globex.post("/v3/mno/job/cdr", november+`,"subscriber_id":"`+who.Data.ID+`"}`).is(t, 422,
		`{"message":"The given data was invalid.","errors":{"subscriber_id":["The selected subscriber id is invalid."]}}`)
}
