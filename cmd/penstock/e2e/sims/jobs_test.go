package sims

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// simOperatorPeer is an operator's server as in docs/operator.md. It executes a command once, and
// returns the status of the command to every request for it. Some requests fail before or after the
// command is executed.
type simOperatorPeer struct {
	url string

	mu           sync.Mutex
	commands     map[string]simCommand // by their key
	effects      map[string][]string   // keys of the commands that changed a SIM, by ICCID, in order
	requests     int
	invalidCount int // requests without a valid command
}

type simCommand struct {
	ID, Action, ICCID string
	status            string // the answer after the command has ended
	requests          int
}

func newSIMOperatorPeer(t *testing.T) *simOperatorPeer {
	t.Helper()
	p := &simOperatorPeer{commands: map[string]simCommand{}, effects: map[string][]string{}}
	p.url = e2e.NewServer(t, p)
	return p
}

func (p *simOperatorPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/ready" {
		return
	}
	status, text := p.command(r.Header.Get("Idempotency-Key"), body)
	if status == 0 {
		panic(http.ErrAbortHandler) // the command is executed, and the response is lost
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// command answers a request. The first request fails for every 11th command and returns pending for every
// 13th command. The first answer is lost for every 17th command. Commands for SIMs with the last digit 7
// are refused.
func (p *simOperatorPeer) command(key string, body []byte) (status int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	c, known := p.commands[key]
	if !known {
		if json.Unmarshal(body, &c) != nil || c.ID != key || key == "" {
			p.invalidCount++
			return http.StatusBadRequest, "not a command"
		}
	}
	c.requests++
	defer func() { p.commands[key] = c }()
	n := len(p.commands)
	if known {
		n = -1
	}
	switch {
	case c.status != "":
	case n%11 == 10:
		return http.StatusServiceUnavailable, "not now"
	case n%13 == 12:
		return http.StatusAccepted, `{"status": "pending", "retry_after": 0.5}`
	case strings.HasSuffix(c.ICCID, "7"):
		c.status = `{"status": "refused", "reason": "barred"}`
	default:
		c.status = `{"status": "completed"}`
		p.effects[c.ICCID] = append(p.effects[c.ICCID], key)
	}
	if n%17 == 16 {
		return 0, ""
	}
	return http.StatusOK, c.status
}

// simEvents is an endpoint for an account's callback URL. It records events by id.
type simEvents struct {
	url string

	mu       sync.Mutex
	received map[string]simEvent
	invalid  []string
	count    int
}

type simEvent struct {
	ID, Type string
	Data     struct {
		ID, Action, Status, ICCID, Error string
		Previous                         string `json:"previous_state"`
		Current                          string `json:"current_state"`
		JobID                            string `json:"job_id"`
	}
	body string
}

func newSIMEvents(t *testing.T) *simEvents {
	t.Helper()
	e := &simEvents{received: map[string]simEvent{}}
	e.url = e2e.NewServer(t, e)
	return e
}

func (e *simEvents) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	event := simEvent{body: string(body)}
	err := json.Unmarshal(body, &event)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	earlier, repeated := e.received[event.ID]
	switch {
	case err != nil || event.ID == "" || r.Header.Get("Webhook-Id") != event.ID || !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,"):
		e.invalid = append(e.invalid, fmt.Sprintf("%s %v", body, r.Header))
	case repeated && earlier.body != event.body:
		e.invalid = append(e.invalid, earlier.body+" and "+event.body)
	}
	e.received[event.ID] = event
}

// jobEvents returns the events about ended jobs.
func (e *simEvents) jobEvents() map[string]simEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Collect(func(yield func(string, simEvent) bool) {
		for id, event := range e.received {
			if strings.HasPrefix(event.Type, "job.") && !yield(id, event) {
				return
			}
		}
	})
}

// simFleet returns an inventory of n SIMs and their states, half of them pending.
func simFleet(n int, callback string) (inventory string, states map[string]string) {
	states = map[string]string{}
	var b strings.Builder
	fmt.Fprintf(&b, "accounts: [{name: acme, tokens: [{token: acme-all-0123456}], webhook_secret: whsec_%s, callback_url: %q, sims: [", strings.Repeat("A", 32), callback)
	for i := range n {
		iccid, state := fmt.Sprintf("8944%015d", i), []string{"pending", "active", "suspended", "pending"}[i%4]
		states[iccid] = state
		fmt.Fprintf(&b, "{iccid: %q, current_state: %s}, ", iccid, state)
	}
	return b.String() + "]}]", states
}

// TestSIMJobsSurviveKills requests two jobs for each of many SIMs. The gateway is killed after up to two
// seconds each time, and the operator fails before or after it has executed a command. There are 80 jobs
// and up to two kills. With more jobs, in a soak or by PENSTOCK_TEST_SIM_JOBS, the kills continue until
// the jobs have ended.
func TestSIMJobsSurviveKills(t *testing.T) {
	t.Parallel()
	jobs, maxKills := e2e.Rounds(t, "PENSTOCK_TEST_SIM_JOBS", 80, 2000), 2
	if jobs > 80 {
		maxKills = math.MaxInt
	}
	random := e2e.Random(t)
	peer, events := newSIMOperatorPeer(t), newSIMEvents(t)
	inventory, states := simFleet(jobs/2, events.url)
	s := e2e.RealSite(t)
	g := e2e.NewGateway(t, s, "", "PENSTOCK_INVENTORY=", "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	g.Configure(fmt.Sprintf("operator: {type: http, url: %q}\n", peer.url))
	g.Spawn()
	g.Admin().Put("/admin/inventory", inventory).Mentions(t, 200)
	r := &jobRound{t: t, acme: e2e.CustomerOf(g), accepted: map[string]string{}, answers: map[string]int{}}
	r.subscriber = r.acme.Create("/v3/mno/subscriber/register", `{"forename": "A", "surname": "B", "address": "C", "post_code": "D", "contact_no": "1"}`)
	startedAt, kills := time.Now(), 0
	allRequested := r.requestAll(slices.Sorted(maps.Keys(states)))
	allEnded := func() bool {
		select {
		case <-allRequested:
			return r.unfinished() == 0
		default:
			return false
		}
	}
	for ; kills < maxKills && (kills == 0 || !allEnded()); kills++ {
		e2e.SleepRandomly(random, 2*time.Second)
		g.Kill()
		g.Spawn()
	}
	relaytest.Eventually(t, "every job ends", func() (any, bool) { return r.answers, allEnded() })
	listedJobs := r.acme.SIMJobs()
	relaytest.Eventually(t, "the callback has received the end of every job", func() (any, bool) {
		n := len(events.jobEvents())
		return fmt.Sprintf("%d of %d", n, len(listedJobs)), n >= len(listedJobs)
	})
	r.check(listedJobs, states, peer, events)
	t.Logf("%d jobs of %d SIMs, %d kills in %s; the operator received %d requests for %d commands, the callback %d events in %d requests; answers %v",
		len(listedJobs), len(states), kills, time.Since(startedAt).Round(time.Second), peer.requests, len(peer.commands), len(events.received), events.count, r.answers)
	g.TerminateCleanly()
}
