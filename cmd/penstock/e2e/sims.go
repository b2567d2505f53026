package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/relay/relaytest"
)

// The contract's SIMs: one that is pending, two that are active.
const (
	PendingSIM = "8944000000000000001"
	ActiveSIM  = "8944000000000000002"
	PooledSIM  = "8944000000000000003"
)

// Cellular sends requests with an account's token where the cellular interface
// wants it.
func (g *Gateway) Cellular(token string) Client { return g.As("").With("X-Auth-Token", token) }

// AwaitJob waits for the end of the job that an answer names.
func (g *Gateway) AwaitJob(begun Response) string {
	g.T.Helper()
	var job struct{ Data struct{ ID, Status string } }
	begun.Decode(g.T, &job)
	relaytest.Eventually(g.T, "the job ends", func() (any, bool) {
		g.Cellular("acme-all-0123456").Get("/v3/mno/job/"+job.Data.ID+"/status").Decode(g.T, &job)
		return job, job.Data.Status == "completed" || job.Data.Status == "failed"
	})
	return job.Data.ID
}

// StartJob requests a job and returns its id.
func (c Client) StartJob(path, body string) string {
	c.Gateway.T.Helper()
	var made struct{ Data struct{ ID string } }
	c.Post(path, body).Decode(c.Gateway.T, &made)
	return made.Data.ID
}

// AwaitJobStatus waits until a job has ended and checks its status.
func (c Client) AwaitJobStatus(id, status string) {
	c.Gateway.T.Helper()
	until := time.Now().Add(10 * time.Minute)
	for {
		var job struct{ Data struct{ Status string } }
		c.Get("/v3/mno/job/"+id+"/status").Decode(c.Gateway.T, &job)
		if s := job.Data.Status; s == status {
			return
		} else if s == "completed" || s == "failed" || time.Now().After(until) {
			c.Gateway.T.Fatalf("job %s is %s, want %s", id, s, status)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// CurrentPeriod is the period of a report or a file of records.
func CurrentPeriod() string {
	return fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, time.Now().AddDate(0, 0, -1).Format(time.RFC3339), time.Now().AddDate(0, 0, 1).Format(time.RFC3339))
}

// UsageBySIM reads the bytes of each SIM from a usage report.
func UsageBySIM(t *testing.T, a Response) map[string]int {
	t.Helper()
	var report struct {
		Data []struct {
			ICCID string
			Usage int
		}
	}
	a.Decode(t, &report)
	out := map[string]int{}
	for _, row := range report.Data {
		out[row.ICCID] += row.Usage
	}
	return out
}

// EventCallback is the endpoint of an account's callback URL. It records signed events.
type EventCallback struct {
	URL string

	mu    sync.Mutex
	heard map[string]string // webhook-id → type and what it is about
}

// NewEventCallback starts the endpoint.
func NewEventCallback(t *testing.T) *EventCallback {
	t.Helper()
	key, err := webhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	relaytest.NoError(t, err)
	e := &EventCallback{heard: make(map[string]string)}
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
	e.URL = server.URL
	return e
}

// Received lists the events, except those about jobs.
func (e *EventCallback) Received() []string {
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
	SIMA, SIMB, SIMC = "8944500000000000101", "8944500000000000102", "8944500000000000103"
	SIMG             = "8944500000000000201"
)

// UsageInventory declares the accounts acme and globex with their SIMs.
func UsageInventory(callback string) string {
	return fmt.Sprintf(`accounts:
  - name: acme
    tokens: [{token: acme-all-0123456, scopes: [cellular, carrier]}]
    webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    callback_url: %s
    sims: [{iccid: %q, current_state: active}, {iccid: %q, current_state: active}, {iccid: %q, current_state: active}]
  - {name: globex, tokens: [{token: globex-token-0123456, scopes: [cellular, carrier]}], sims: [{iccid: %q, current_state: active}]}`, callback, SIMA, SIMB, SIMC, SIMG)
}

// UsageRecord returns a data record of a SIM that starts now.
func UsageRecord(id, iccid string, bytes int) string {
	return fmt.Sprintf(`{"id":%q,"iccid":%q,"start_time":%q,"type":"data","bytes":%d,"duration":60}`+"\n", id, iccid, time.Now().UTC().Format(time.RFC3339), bytes)
}

// AwaitExactly waits until exactly these events have been received.
func (e *EventCallback) AwaitExactly(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	relaytest.Eventually(t, "the callback hears", func() (any, bool) { got := e.Received(); return got, slices.Equal(got, want) })
}

// Cellular sends the token where the cellular interface expects it.
func (c Client) Cellular() Client {
	return c.With("Authorization", "").With("X-Auth-Token", "acme-all-0123456")
}
