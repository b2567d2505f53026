package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// callbacks is an account's callback URL: it keeps what it is told, if that is
// signed.
type callbacks struct {
	url string

	mu       sync.Mutex
	claimed  map[string]int // job → tokens claimed
	unsigned int
}

func newCallbacks(t *testing.T) *callbacks {
	t.Helper()
	key, err := webhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	c := &callbacks{claimed: make(map[string]int)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		var e struct {
			Type string
			Data struct {
				JobID  string `json:"job_id"`
				Claims []struct{ Claimed bool }
			}
		}
		if key.Verify(body, r.Header) != nil || json.Unmarshal(body, &e) != nil || e.Type != "token.claimed" {
			c.unsigned++
			return
		}
		n := 0
		for _, one := range e.Data.Claims {
			if one.Claimed {
				n++
			}
		}
		c.claimed[e.Data.JobID] = n
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// told reports how many jobs were told of, and how many claims they made.
func (c *callbacks) told() (jobs, claims, unsigned int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.claimed {
		claims += n
	}
	return len(c.claimed), claims, c.unsigned
}

// TestClaimsSurviveKills has 1,000 claim a token with three claims while the
// gateway is killed again and again: three succeed, every job that was accepted
// ends and is told of, and the ledger is whole.
func TestClaimsSurviveKills(t *testing.T) {
	t.Parallel()
	kills := numberFrom(t, "PENSTOCK_TEST_LEDGER_KILLS", 4)
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		told := newCallbacks(t)
		g := newGateway(t, s, fixture(t, "ledgers.yaml", "CALLBACK", told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.spawn()
		acme := g.as("acme-all-0123456")
		var job string
		acme.post("/ledgers/assets/tokens", `{}`).into(t, &job)
		var made struct{ Data struct{ Token string } }
		g.jobDone(acme, job, &made)

		accepted := g.claimants(acme, made.Data.Token, kills)
		for _, id := range accepted {
			g.jobDone(acme, id, nil)
		}
		var validity struct {
			Data struct {
				Valid     bool
				Remaining int `json:"remaining_claims"`
			}
		}
		acme.post("/ledgers/tokens/validate", `{"token":"`+made.Data.Token+`"}`).into(t, &validity)
		if !validity.Data.Valid || validity.Data.Remaining != 0 {
			t.Errorf("the token has %+v", validity.Data)
		}
		history := acme.get("/ledgers/tokens/" + made.Data.Token + "/history").body
		if n := strings.Count(history, `"claimed"`); n != 3 {
			t.Errorf("%d claims stand in the history", n)
		}
		eventually(t, "every job is told of", func() (any, bool) {
			jobs, claims, unsigned := told.told()
			return []int{jobs, claims, unsigned, len(accepted)}, jobs >= len(accepted) && claims == 3 && unsigned == 0
		})
		if code := g.terminate(); code != 0 {
			t.Errorf("exit code %d at the end", code)
		}
		out, err := g.command("ledger", "verify").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "acme/assets: 4 entries are as they were signed") {
			t.Errorf("%s, %v", out, err)
		}
	})
}

// claimants has 1,000 claim a token while the gateway is killed so many times,
// and returns the jobs that were accepted. Each tries until it is.
func (g *gateway) claimants(c caller, token string, kills int) []string {
	g.t.Helper()
	var mu sync.Mutex
	var accepted []string
	var all sync.WaitGroup
	slots := make(chan struct{}, 50)
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(accepted) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				for {
					a, err := c.try("POST", "/ledgers/tokens/claim", `{"token":"`+token+`"}`)
					var job struct{ JobID string }
					if err == nil && a.status == 200 && json.Unmarshal([]byte(a.body), &job) == nil {
						mu.Lock()
						accepted = append(accepted, job.JobID)
						mu.Unlock()
						return
					}
					<-time.After(20 * time.Millisecond)
				}
			})
		}
		all.Wait()
	}()
	for round := range kills {
		eventually(g.t, "claims go on", func() (any, bool) { n := count(); return n, n > round*900/kills+20 })
		g.kill()
		g.spawn()
	}
	<-done
	return accepted
}

// testLedgers is what one account's ledgers are to another.
func testLedgers(t *testing.T, s *site) {
	told := newCallbacks(t)
	g := start(t, s, fixture(t, "ledgers.yaml", "CALLBACK", told.url), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme, globex := g.as("acme-all-0123456"), g.as("globex-all-0123456")
	var job string
	acme.post("/ledgers/assets/tokens", `{"metadata":{"a":"<b>"}}`).into(t, &job)
	var made struct{ Data struct{ Token string } }
	g.jobDone(acme, job, &made)
	token := made.Data.Token
	const refused = `{"message":"The given token was invalid.","errors":{"token":["The given token was invalid."]}}`
	globex.get("/ledgers/jobs/"+job).is(t, 404, "")
	globex.get("/ledgers/tokens/"+token+"/history").is(t, 422, refused)
	for path, body := range map[string]string{
		"/ledgers/tokens/claim": `{"token":"` + token + `"}`, "/ledgers/tokens/validate": `{"token":"` + token + `"}`,
		"/ledgers/tokens/metadata": `{"token":"` + token + `","metadata":{}}`,
	} {
		globex.post(path, body).is(t, 422, refused)
	}
	var ledgers []struct{ Name, Hash string }
	acme.get("/ledgers").into(t, &ledgers)
	for _, name := range []string{ledgers[0].Hash, "none"} {
		globex.post("/ledgers/"+name+"/tokens", `{}`).is(t, 404, "")
		globex.get("/ledgers/"+name+"/export").is(t, 404, "")
		globex.get("/ledgers/"+name+"/ca").is(t, 404, "")
	}
	acme.get("/ledgers/"+ledgers[0].Hash+"/export").mentions(t, 200, `"metadata":{"a":"<b>"}`)
	g.admin().put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"acme","tokens":[{"token":"acme-all-0123456"}]}]}`).mentions(t, 200, "account acme: ledger assets: it has a history")
	if again := acme.get("/ledgers").body; !strings.Contains(again, ledgers[0].Hash) {
		t.Errorf("after the prune: %s", again)
	}
}
