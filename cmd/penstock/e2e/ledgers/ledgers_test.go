// Package ledgers tests ledgers, claims and the detection of changed ledgers end to end.
package ledgers

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"ledgers": testLedgers,
	})
}

// TestClaimsSurviveKills sends hundreds of claims of a token that allows three, while the
// gateway is killed repeatedly. Three claims succeed, every accepted job ends and is reported to the
// callback URL, and the ledger verifies.
func TestClaimsSurviveKills(t *testing.T) {
	t.Parallel()
	kills, claims := e2e.Rounds(t, "PENSTOCK_TEST_LEDGER_KILLS", 2, 4), e2e.Rounds(t, "PENSTOCK_TEST_LEDGER_CLAIMS", 200, 1000)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		callback := e2e.NewLedgerCallback(t)
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
		g.Spawn()
		acme := g.WithToken("acme-all-0123456")
		token := acme.CreateToken("assets", `{}`)
		accepted := sendClaims(g, acme, token, claims, kills)
		for _, id := range accepted {
			g.AwaitLedgerJob(acme, id, nil)
		}
		var validity struct {
			Data struct {
				Valid     bool
				Remaining int `json:"remaining_claims"`
			}
		}
		acme.Post("/ledgers/tokens/validate", `{"token":"`+token+`"}`).Decode(t, &validity)
		relaytest.Equal(t, "whether the token is valid", validity.Data.Valid, true)
		relaytest.Equal(t, "the remaining claims", validity.Data.Remaining, 0)
		history := acme.Get("/ledgers/tokens/" + token + "/history").Body
		if n := strings.Count(history, `"claimed"`); n != 3 {
			t.Errorf("claims in the history = %d, want 3", n)
		}
		relaytest.Eventually(t, "the callback has received every job", func() (any, bool) {
			jobs, claims, unexpected := callback.Counts()
			return []int{jobs, claims, unexpected, len(accepted)}, jobs >= len(accepted) && claims == 3 && unexpected == 0
		})
		g.TerminateCleanly()
		output, err := g.Command("ledger", "verify").CombinedOutput()
		if err != nil || !strings.Contains(string(output), "acme/assets: 4 entries match their signatures") {
			t.Errorf("ledger verify: output = %s, error = %v, want 4 valid entries", output, err)
		}
	})
}

// sendClaims sends claims of a token from many clients while it kills the gateway several times, and
// returns the accepted jobs. Each client repeats its claim until the claim is accepted.
func sendClaims(g *e2e.Gateway, c e2e.Client, token string, claims, kills int) []string {
	g.T.Helper()
	var mu sync.Mutex
	var accepted []string
	var clients sync.WaitGroup
	slots := make(chan struct{}, 50)
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(accepted) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range claims {
			slots <- struct{}{}
			clients.Go(func() {
				defer func() { <-slots }()
				for {
					resp, err := c.Try("POST", "/ledgers/tokens/claim", `{"token":"`+token+`"}`)
					var job struct{ JobID string }
					if err == nil && resp.Status == 200 && json.Unmarshal([]byte(resp.Body), &job) == nil {
						mu.Lock()
						accepted = append(accepted, job.JobID)
						mu.Unlock()
						return
					}
					<-time.After(20 * time.Millisecond)
				}
			})
		}
		clients.Wait()
	}()
	for round := range kills {
		relaytest.Eventually(g.T, "more claims are accepted", func() (any, bool) { n := count(); return n, n > round*claims*9/10/kills+claims/50 })
		g.Kill()
		g.Spawn()
	}
	<-done
	return accepted
}

// testLedgers checks that an account cannot use the ledgers of another account.
func testLedgers(t *testing.T, s *e2e.Site) {
	callback := e2e.NewLedgerCallback(t)
	g := e2e.Start(t, s, e2e.Fixture(t, "ledgers.yaml", "CALLBACK", callback.URL), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	acme, globex := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456")
	var job string
	acme.Post("/ledgers/assets/tokens", `{"metadata":{"a":"<b>"}}`).Decode(t, &job)
	var created struct{ Data struct{ Token string } }
	g.AwaitLedgerJob(acme, job, &created)
	token := created.Data.Token
	const invalidToken = `{"message":"The given token was invalid.","errors":{"token":["The given token was invalid."]}}`
	globex.Get("/ledgers/jobs/"+job).Expect(t, 404, "")
	globex.Get("/ledgers/tokens/"+token+"/history").Expect(t, 422, invalidToken)
	for path, body := range map[string]string{
		"/ledgers/tokens/claim": `{"token":"` + token + `"}`, "/ledgers/tokens/validate": `{"token":"` + token + `"}`,
		"/ledgers/tokens/metadata": `{"token":"` + token + `","metadata":{}}`,
	} {
		globex.Post(path, body).Expect(t, 422, invalidToken)
	}
	var ledgers []struct{ Name, Hash string }
	acme.Get("/ledgers").Decode(t, &ledgers)
	for _, name := range []string{ledgers[0].Hash, "none"} {
		globex.Post("/ledgers/"+name+"/tokens", `{}`).Expect(t, 404, "")
		globex.Get("/ledgers/"+name+"/export").Expect(t, 404, "")
		globex.Get("/ledgers/"+name+"/ca").Expect(t, 404, "")
	}
	acme.Get("/ledgers/"+ledgers[0].Hash+"/export").Mentions(t, 200, `"metadata":{"a":"<b>"}`)
	g.Admin().Put("/admin/inventory?prune=true&allow_removals=100", `{"accounts":[{"name":"acme","tokens":[{"token":"acme-all-0123456"}]}]}`).Mentions(t, 200, "account acme: ledger assets: it has a history")
	if list := acme.Get("/ledgers").Body; !strings.Contains(list, ledgers[0].Hash) {
		t.Errorf("ledgers after the prune = %s, want the ledger assets", list)
	}
}
