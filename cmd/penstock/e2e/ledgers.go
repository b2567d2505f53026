package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// Asset is a token of the contract's ledger, with the ids of the jobs that created and
// claimed it.
type Asset struct{ Token, Private, Job, Claim string }

// MintToken creates a token with a redirect URL and claims it once.
func (g *Gateway) MintToken() (a Asset) {
	g.T.Helper()
	acme := g.WithToken("acme-all-0123456")
	acme.Post("/ledgers/l1/tokens", `{"metadata":{"a":1},"redirect_url":"http://127.0.0.1:9/there","redirect_meta":{"x":1}}`).Decode(g.T, &a.Job)
	var created struct {
		Data struct {
			Status, Token string
			PrivateToken  string `json:"private_token"`
		}
	}
	g.AwaitLedgerJob(acme, a.Job, &created)
	a.Token, a.Private = created.Data.Token, created.Data.PrivateToken
	var claimed struct{ JobID string }
	acme.Post("/ledgers/tokens/claim", `{"token":"`+a.Token+`","private_token":"`+a.Private+`"}`).Decode(g.T, &claimed)
	a.Claim = claimed.JobID
	g.AwaitLedgerJob(acme, a.Claim, nil)
	return a
}

// CreateToken creates a token in a ledger and returns the token.
func (c Client) CreateToken(ledger, body string) string {
	c.Gateway.T.Helper()
	var job string
	c.Post("/ledgers/"+ledger+"/tokens", body).Decode(c.Gateway.T, &job)
	var created struct{ Data struct{ Token string } }
	c.Gateway.AwaitLedgerJob(c, job, &created)
	return created.Data.Token
}

// AwaitLedgerJob waits until a job is completed and decodes the answer into target, unless target is nil.
func (g *Gateway) AwaitLedgerJob(c Client, id string, target any) {
	g.T.Helper()
	var response Response
	relaytest.Eventually(g.T, "job "+id+" is completed", func() (any, bool) {
		response = c.Get("/ledgers/jobs/" + id)
		return response, strings.Contains(response.Body, `"completed"`)
	})
	if target != nil {
		response.Decode(g.T, target)
	}
}

// LedgerCallback is an endpoint for an account's callback URL. It counts the claims in signed
// token.claimed events.
type LedgerCallback struct {
	URL string

	mu         sync.Mutex
	claimed    map[string]int // job → tokens claimed
	unexpected int            // unsigned requests and events of other types
}

// NewLedgerCallback starts the endpoint.
func NewLedgerCallback(t *testing.T) *LedgerCallback {
	t.Helper()
	l := &LedgerCallback{claimed: make(map[string]int)}
	l.URL = newCallback(t, func(_ http.Header, body []byte, signed bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var e struct {
			Type string
			Data struct {
				JobID  string `json:"job_id"`
				Claims []struct{ Claimed bool }
			}
		}
		if !signed || json.Unmarshal(body, &e) != nil || e.Type != "token.claimed" {
			l.unexpected++
			return
		}
		n := 0
		for _, claim := range e.Data.Claims {
			if claim.Claimed {
				n++
			}
		}
		l.claimed[e.Data.JobID] = n
	})
	return l
}

// Counts returns the numbers of the jobs and claims in the events, and the number of requests
// that were not a signed token.claimed event.
func (l *LedgerCallback) Counts() (jobs, claims, unexpected int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.claimed {
		claims += n
	}
	return len(l.claimed), claims, l.unexpected
}
