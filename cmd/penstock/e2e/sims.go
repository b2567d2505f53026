package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/relay/relaytest"
)

// SIMs of contract.yaml.
const (
	PendingSIM = "8944000000000000001"
	ActiveSIM  = "8944000000000000002"
	PooledSIM  = "8944000000000000003"
)

// AwaitJob waits for the end of the job in an answer and returns its id.
func (g *Gateway) AwaitJob(answer Response) string {
	g.T.Helper()
	var job struct{ Data struct{ ID, Status string } }
	answer.Decode(g.T, &job)
	relaytest.Eventually(g.T, "the job ends", func() (any, bool) {
		CustomerOf(g).Get("/v3/mno/job/"+job.Data.ID+"/status").Decode(g.T, &job)
		return job, job.Data.Status == "completed" || job.Data.Status == "failed"
	})
	return job.Data.ID
}

// CompleteJob requests a job, waits until it is completed and returns its id.
func (c Client) CompleteJob(path, body string) (id string) {
	c.Gateway.T.Helper()
	id = c.Create(path, body)
	deadline := time.Now().Add(10 * time.Minute)
	for {
		var job struct{ Data struct{ Status string } }
		c.Get("/v3/mno/job/"+id+"/status").Decode(c.Gateway.T, &job)
		if s := job.Data.Status; s == "completed" {
			return id
		} else if s == "failed" || time.Now().After(deadline) {
			c.Gateway.T.Fatalf("job %s of %s is %s, want completed", id, path, s)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// SIMState is a SIM as the API shows it.
type SIMState struct {
	ICCID     string
	Current   string `json:"current_state"`
	Requested string `json:"requested_state"`
}

// SIMJob is a SIM job as the API lists it.
type SIMJob struct{ ID, Action, Status string }

// SIMJobs lists all SIM jobs of the account, in the order of their creation.
func (c Client) SIMJobs() []SIMJob {
	c.Gateway.T.Helper()
	return ListNumbered[SIMJob](c, "/v3/mno/job")
}

// CurrentPeriod returns a period around now for a report or a file of records, as JSON.
func CurrentPeriod() string {
	return fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, time.Now().AddDate(0, 0, -1).Format(time.RFC3339), time.Now().AddDate(0, 0, 1).Format(time.RFC3339))
}

// UsageBySIM returns the bytes of each SIM in a usage report.
func UsageBySIM(t *testing.T, resp Response) map[string]int {
	t.Helper()
	var report struct {
		Data []struct {
			ICCID string
			Usage int
		}
	}
	resp.Decode(t, &report)
	result := map[string]int{}
	for _, row := range report.Data {
		result[row.ICCID] += row.Usage
	}
	return result
}

// WebhookSecret is the secret of acme in the inventories for callbacks.
const WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// newCallback starts an endpoint for acme's callback URL and returns its URL. It calls handle
// with each event; signed reports whether the signature matches WebhookSecret.
func newCallback(t *testing.T, handle func(header http.Header, body []byte, signed bool)) (url string) {
	t.Helper()
	key := relaytest.Must(webhooks.NewWebhook(WebhookSecret))(t)
	return NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		handle(r.Header, body, key.Verify(body, r.Header) == nil)
	}))
}

// EventCallback is an endpoint for an account's callback URL. It records events. An event without a
// valid signature has the type "unsigned".
type EventCallback struct {
	URL string

	mu     sync.Mutex
	events map[string]string // webhook-id → type, SIM or pool, and state
}

// NewEventCallback starts the endpoint.
func NewEventCallback(t *testing.T) *EventCallback {
	t.Helper()
	e := &EventCallback{events: make(map[string]string)}
	e.URL = newCallback(t, func(header http.Header, body []byte, signed bool) {
		var event struct {
			Type string
			Data struct {
				ICCID        string
				PoolID       string `json:"pool_id"`
				CurrentState string `json:"current_state"`
			}
		}
		if !signed || json.Unmarshal(body, &event) != nil {
			event.Type = "unsigned"
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.events[header.Get("Webhook-Id")] = strings.TrimSpace(event.Type + " " + event.Data.ICCID + event.Data.PoolID + " " + event.Data.CurrentState)
	})
	return e
}

// Received returns the events as sorted texts, except events about jobs.
func (e *EventCallback) Received() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var texts []string
	for _, text := range e.events {
		if !strings.HasPrefix(text, "job.") {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// SIMs in UsageInventory: three of the account acme, and SIMG of globex.
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

// UsageRecord returns the record of a SIM's data session, which starts now.
func UsageRecord(id, iccid string, bytes int) string {
	return fmt.Sprintf(`{"id":%q,"iccid":%q,"start_time":%q,"type":"data","bytes":%d,"duration":60}`+"\n", id, iccid, time.Now().UTC().Format(time.RFC3339), bytes)
}

// AwaitExactly waits until exactly these events have been received.
func (e *EventCallback) AwaitExactly(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	relaytest.Eventually(t, "the callback has received exactly the wanted events", func() (any, bool) { got := e.Received(); return got, slices.Equal(got, want) })
}
