package failures

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// stallingEndpoint does not answer the first request for a text. It answers later requests.
type stallingEndpoint struct {
	mu          sync.Mutex
	roundEnded  chan struct{}              // closed when the round is over
	waiting     map[string]bool            // texts of requests without an answer in this round
	answerCount map[string]int             // number of answered requests, by text
	webhookIDs  map[string]map[string]bool // webhook-ids by text
}

func (e *stallingEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("m")
	e.mu.Lock()
	if e.webhookIDs[text] == nil {
		e.webhookIDs[text] = map[string]bool{}
	}
	isFirst := len(e.webhookIDs[text]) == 0
	e.webhookIDs[text][r.Header.Get("Webhook-Id")] = true
	roundEnded := e.roundEnded
	if isFirst {
		e.waiting[text] = true
	}
	e.mu.Unlock()
	if isFirst { // the gateway is killed before the answer
		<-roundEnded
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answerCount[text]++
}

func (e *stallingEndpoint) waitingCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting)
}

// nextRound ends the requests without an answer, and begins a new round.
func (e *stallingEndpoint) nextRound() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.roundEnded)
	e.roundEnded, e.waiting = make(chan struct{}), map[string]bool{}
}

// TestKillWithRequestsInFlightLosesNothing kills the gateway twice, 20 times in a soak, or
// PENSTOCK_TEST_KILLS times. At each kill, the requests for 50 acknowledged messages are in flight.
func TestKillWithRequestsInFlightLosesNothing(t *testing.T) {
	const inFlight = 50
	t.Parallel()
	rounds := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		endpoint := &stallingEndpoint{roundEnded: make(chan struct{}), waiting: map[string]bool{}, answerCount: map[string]int{}, webhookIDs: map[string]map[string]bool{}}
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", e2e.NewServer(t, endpoint), "parameters:", "pace: {concurrency: 64}, parameters:"))
		acknowledged := map[string]bool{}
		for round := range rounds {
			g.Spawn()
			for n := range inFlight {
				text := fmt.Sprintf("message %d of round %d", n, round)
				g.WithToken("acme-all-0123456").PostInboundText(text, "447800012345", text)
				acknowledged[text] = true
			}
			relaytest.Eventually(t, "all requests of the round are in flight", func() (any, bool) { return endpoint.waitingCount(), endpoint.waitingCount() == inFlight })
			g.Kill()
			endpoint.nextRound()
		}
		g.Spawn()
		missing := func() (texts []string) {
			endpoint.mu.Lock()
			defer endpoint.mu.Unlock()
			for text := range acknowledged {
				if endpoint.answerCount[text] == 0 {
					texts = append(texts, text)
				}
			}
			return texts
		}
		relaytest.Eventually(t, "every acknowledged message is delivered", func() (any, bool) {
			texts := missing()
			return fmt.Sprintf("%d of %d are missing: %.30q", len(texts), len(acknowledged), texts), len(texts) == 0
		})
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		repeated := 0
		for text, ids := range endpoint.webhookIDs {
			if len(ids) != 1 || ids[""] {
				t.Errorf("%q arrived with the webhook-ids %v, want one", text, ids)
			}
			repeated += endpoint.answerCount[text] - 1
		}
		t.Logf("killed %d times with %d requests in flight: 0 of %d lost, %d answered more than once", rounds, inFlight, len(acknowledged), repeated)
	})
}
