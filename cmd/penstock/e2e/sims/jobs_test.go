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

// simOperatorPeer is an operator's server as docs/operator.md has it. It does a
// command once and tells how that stands as often as it is asked, if it does not
// fail: now before the work, now after.
type simOperatorPeer struct {
	url string

	mu       sync.Mutex
	commands map[string]simCommand // by their key
	effects  map[string][]string   // keys that changed a SIM, by ICCID, in order
	asked    int
	faults   int
}

type simCommand struct {
	ID, Action, ICCID string
	status            string // once the end is known
	asked             int
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
		panic(http.ErrAbortHandler) // the work is done, and the response is lost
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// command answers one request: every 11th command fails at first, every 13th takes
// two requests, of every 17th the first answer is lost, and SIMs that end in 7 are
// refused everything.
func (p *simOperatorPeer) command(key string, body []byte) (status int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	c, known := p.commands[key]
	if !known {
		if json.Unmarshal(body, &c) != nil || c.ID != key || key == "" {
			p.faults++
			return http.StatusBadRequest, "no command"
		}
	}
	c.asked++
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

// simEvents is an account's callback: what it was told, by webhook-id.
type simEvents struct {
	url string

	mu    sync.Mutex
	told  map[string]simEvent
	wrong []string
	count int
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
	e := &simEvents{told: map[string]simEvent{}}
	e.url = e2e.NewServer(t, e)
	return e
}

func (e *simEvents) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	one := simEvent{body: string(body)}
	err := json.Unmarshal(body, &one)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	known, twice := e.told[one.ID]
	switch {
	case err != nil || one.ID == "" || r.Header.Get("Webhook-Id") != one.ID || !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,"):
		e.wrong = append(e.wrong, fmt.Sprintf("%s %v", body, r.Header))
	case twice && known.body != one.body:
		e.wrong = append(e.wrong, known.body+" and "+one.body)
	}
	e.told[one.ID] = one
}

// ended returns the events that tell of the ends of jobs.
func (e *simEvents) ended() map[string]simEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Collect(func(yield func(string, simEvent) bool) {
		for id, one := range e.told {
			if strings.HasPrefix(one.Type, "job.") && !yield(id, one) {
				return
			}
		}
	})
}

// simFleet is an inventory of SIMs, a quarter of them in each of some states.
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

// TestSIMJobsSurviveKills has two jobs done for each of many SIMs, while the gateway
// is killed every second or two, the operator fails now before and now after it has
// done something, and requests continue. A few jobs and two kills are
// enough, unless PENSTOCK_TEST_SIM_JOBS or a soak has more.
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
	began, kills := time.Now(), 0
	asked := r.askAll(slices.Sorted(maps.Keys(states)))
	over := func() bool {
		select {
		case <-asked:
			return r.unfinished() == 0
		default:
			return false
		}
	}
	for ; kills < maxKills && (kills == 0 || !over()); kills++ {
		e2e.SleepRandomly(random, 2*time.Second)
		g.Kill()
		g.Spawn()
	}
	relaytest.Eventually(t, "every job ends", func() (any, bool) { return r.answers, over() })
	found := r.acme.SIMJobs()
	relaytest.Eventually(t, "the callback has every end", func() (any, bool) {
		n := len(events.ended())
		return fmt.Sprintf("%d of %d", n, len(found)), n >= len(found)
	})
	r.check(found, states, peer, events)
	t.Logf("%d jobs of %d SIMs, %d kills in %s; the operator was asked %d times for %d commands; %d events told %d times; answers %v",
		len(found), len(states), kills, time.Since(began).Round(time.Second), peer.asked, len(peer.commands), len(events.told), events.count, r.answers)
	g.EndCleanly()
}
