package failures

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// held is an endpoint that answers a text only when it comes again.
type held struct {
	mu       sync.Mutex
	open     chan struct{}   // closed when the round is over
	waiting  map[string]bool // texts whose request waits now
	answered map[string]int  // texts whose request came again, and how often
	hooks    map[string]map[string]bool
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("m")
	h.mu.Lock()
	if h.hooks[text] == nil {
		h.hooks[text] = map[string]bool{}
	}
	first := len(h.hooks[text]) == 0
	h.hooks[text][r.Header.Get("Webhook-Id")] = true
	open := h.open
	if first {
		h.waiting[text] = true
	}
	h.mu.Unlock()
	if first { // its gateway is killed before it has an answer
		<-open
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered[text]++
}

func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}

// nextRound lets go of what waits and keeps what comes from now on.
func (h *held) nextRound() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
	h.open, h.waiting = make(chan struct{}), map[string]bool{}
}

// TestKillWithRequestsInFlightLosesNothing kills the gateway twice, 20 times
// in a soak or PENSTOCK_TEST_KILLS times, each time with 50 acknowledged messages whose requests
// are under way and have no answer.
func TestKillWithRequestsInFlightLosesNothing(t *testing.T) {
	const inFlight = 50
	t.Parallel()
	rounds := e2e.Rounds(t, "PENSTOCK_TEST_KILLS", 2, 20)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		h := &held{open: make(chan struct{}), waiting: map[string]bool{}, answered: map[string]int{}, hooks: map[string]map[string]bool{}}
		g := e2e.NewGateway(t, s, e2e.Fixture(t, "load.yaml", "SINK", e2e.NewServer(t, h), "parameters:", "pace: {concurrency: 64}, parameters:"))
		acknowledged := map[string]bool{}
		for round := range rounds {
			g.Spawn()
			for n := range inFlight {
				text := fmt.Sprintf("message %d of round %d", n, round)
				g.As("acme-all-0123456").PostInboundText(text, "447800012345", text)
				acknowledged[text] = true
			}
			relaytest.Eventually(t, "all requests of the round are under way", func() (any, bool) { return h.count(), h.count() == inFlight })
			g.Kill()
			h.nextRound()
		}
		g.Spawn()
		lost := func() (out []string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for text := range acknowledged {
				if h.answered[text] == 0 {
					out = append(out, text)
				}
			}
			return out
		}
		relaytest.Eventually(t, "every acknowledged message is delivered", func() (any, bool) {
			l := lost()
			return fmt.Sprintf("%d of %d are missing: %.30q", len(l), len(acknowledged), l), len(l) == 0
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		again := 0
		for text, ids := range h.hooks {
			if len(ids) != 1 || ids[""] {
				t.Errorf("%q came with the ids %v, want one", text, ids)
			}
			again += h.answered[text] - 1
		}
		t.Logf("killed %d times with %d requests under way: 0 of %d lost, %d answered more than once", rounds, inFlight, len(acknowledged), again)
	})
}
