package failures

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// stallingEndpoint leaves the first request for a text open and answers later requests.
type stallingEndpoint struct {
	mu       sync.Mutex
	open     chan struct{}              // closed when the round is over
	waiting  map[string]bool            // texts whose request waits now
	answered map[string]int             // number of answered requests, by text
	hooks    map[string]map[string]bool // webhook-ids by text
}

func (e *stallingEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("m")
	e.mu.Lock()
	if e.hooks[text] == nil {
		e.hooks[text] = map[string]bool{}
	}
	first := len(e.hooks[text]) == 0
	e.hooks[text][r.Header.Get("Webhook-Id")] = true
	open := e.open
	if first {
		e.waiting[text] = true
	}
	e.mu.Unlock()
	if first { // the gateway is killed before the answer
		<-open
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered[text]++
}

func (e *stallingEndpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)
}

// nextRound ends the waiting requests and begins a new round.
func (e *stallingEndpoint) nextRound() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.open)
	e.open, e.waiting = make(chan struct{}), map[string]bool{}
}

// TestKillWithRequestsInFlightLosesNothing kills the gateway twice, 20 times in a soak, or
// PENSTOCK_TEST_KILLS times. Each time, 50 acknowledged messages have requests under way
// without an answer.
func TestKillWithRequestsInFlightLosesNothing(t *testing.T) {
	const inFlight = 50
	t.Parallel()
	rounds := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		endpoint := &stallingEndpoint{open: make(chan struct{}), waiting: map[string]bool{}, answered: map[string]int{}, hooks: map[string]map[string]bool{}}
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", e2e.NewServer(t, endpoint), "parameters:", "pace: {concurrency: 64}, parameters:"))
		acknowledged := map[string]bool{}
		for round := range rounds {
			g.Spawn()
			for n := range inFlight {
				text := fmt.Sprintf("message %d of round %d", n, round)
				g.As("acme-all-0123456").PostInboundText(text, "447800012345", text)
				acknowledged[text] = true
			}
			relaytest.Eventually(t, "all requests of the round are under way", func() (any, bool) { return endpoint.count(), endpoint.count() == inFlight })
			g.Kill()
			endpoint.nextRound()
		}
		g.Spawn()
		missing := func() (texts []string) {
			endpoint.mu.Lock()
			defer endpoint.mu.Unlock()
			for text := range acknowledged {
				if endpoint.answered[text] == 0 {
					texts = append(texts, text)
				}
			}
			return texts
		}
		relaytest.Eventually(t, "every acknowledged message is delivered", func() (any, bool) {
			l := missing()
			return fmt.Sprintf("%d of %d are missing: %.30q", len(l), len(acknowledged), l), len(l) == 0
		})
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		repeated := 0
		for text, ids := range endpoint.hooks {
			if len(ids) != 1 || ids[""] {
				t.Errorf("%q arrived with the webhook-ids %v, want one", text, ids)
			}
			repeated += endpoint.answered[text] - 1
		}
		t.Logf("killed %d times with %d requests under way: 0 of %d lost, %d answered more than once", rounds, inFlight, len(acknowledged), repeated)
	})
}
