package failures

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// The mixed load: the pause between two requests of a connection, the SIMs that
// one connection has jobs done on, and how long what is scheduled shortly waits.
const (
	mixedPace = 50 * time.Millisecond
	mixedSIMs = 10
	shortly   = 3 * time.Second
)

// mixed is a load of every kind of traffic from connections of its own, each of
// which remembers what was acknowledged.
type mixed struct {
	*e2e.Loop
	g      *e2e.Gateway
	url    string // of the endpoint
	token  string // of the ledger, which is claimed
	frames *e2e.CounterFrames

	mu      sync.Mutex
	acked   map[string]map[string]string // kind → what → what was answered of it
	later   map[string]int               // answers that something is away, by kind
	refused map[string]int               // any other answer that is no 2xx, and none
}

// The kinds of what is acknowledged.
const (
	ofFrames      = "frames"
	ofTexts       = "SMS"
	ofJoined      = "SMS of three parts"
	ofSends       = "REST sends"
	ofSOAP        = "SOAP sends"
	ofScheduled   = "scheduled sends"
	ofCancelled   = "deleted sends"
	ofUses        = "SIM CDRs"
	ofCalls       = "SIP CDRs"
	ofJobs        = "SIM jobs"
	ofClaims      = "claims"
	ofSubscribers = "subscribers"
	ofDevices     = "devices"
	ofDeleted     = "deleted devices"
)

func mixedKinds() []string {
	return []string{
		ofFrames, ofTexts, ofJoined, ofSends, ofSOAP, ofScheduled, ofCancelled, ofUses, ofCalls, ofJobs, ofClaims,
		ofSubscribers, ofDevices, ofDeleted,
	}
}

// mixedSIM is a SIM of a connection.
func mixedSIM(c, n int) string { return fmt.Sprintf("89446%06d%08d", c, n%mixedSIMs) }

// mixedInventory has what the load needs.
func mixedInventory(t *testing.T, endpoint string) string {
	t.Helper()
	var sims []string
	for c := range 2 {
		for n := range mixedSIMs {
			sims = append(sims, fmt.Sprintf("{iccid: %q, current_state: active}", mixedSIM(c, n)))
		}
	}
	return e2e.Fixture(t, "mixed.yaml", "SINK", endpoint, "SIMS", strings.Join(sims, ", "))
}

// mix makes what the load is about, and begins it.
func mix(g *e2e.Gateway, endpoint string) *mixed {
	g.T.Helper()
	m := &mixed{
		Loop: e2e.NewLoop(mixedPace), g: g, url: endpoint, frames: e2e.NewCounterFrames(g.T),
		acked: map[string]map[string]string{}, later: map[string]int{}, refused: map[string]int{},
	}
	m.token = e2e.CarrierOf(g).CreateToken("assets", `{}`)
	for c := range 2 {
		for _, post := range []func(c, n int){
			m.frame, m.text, m.joined, m.send, m.soap, m.schedule, m.use, m.call, m.job, m.claim, m.subscriber, m.device,
		} {
			m.Go(func(n int) { post(c, n) })
		}
	}
	return m
}

// requestOnce sends a request. unsure says that something is away: what was asked for may
// have been done all the same.
func (m *mixed) requestOnce(kind string, c e2e.Client, method, path, body string) (a e2e.Response, done, unsure bool) {
	a, err := c.Try(method, path, body)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.refused[kind+": no answer: "+err.Error()]++
		return a, false, true
	case a.Status == http.StatusServiceUnavailable || a.Status == http.StatusFailedDependency:
		m.later[kind]++
		return a, false, true
	}
	return a, a.Status >= 200 && a.Status <= 299, false
}

// request repeats a request until the answer is not that something is away.
func (m *mixed) request(kind string, c e2e.Client, method, path, body string) (a e2e.Response, done, unsure bool) {
	tick := time.NewTicker(mixedPace)
	defer tick.Stop()
	for late := time.After(relaytest.Patience); ; {
		one, done, away := m.requestOnce(kind, c, method, path, body)
		if unsure = unsure || away; !away {
			return one, done, unsure
		}
		select {
		case <-tick.C:
		case <-late:
			m.refuse(kind, one)
			return one, false, true
		}
	}
}

// refuse remembers an answer that nothing explains.
func (m *mixed) refuse(kind string, a e2e.Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[fmt.Sprintf("%s: %s: %d %s", kind, a.Request, a.Status, a.Body)]++
}

// note remembers what was acknowledged.
func (m *mixed) note(kind, what, answer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.acked[kind] == nil {
		m.acked[kind] = map[string]string{}
	}
	m.acked[kind][what] = answer
}

// requestUntilDone asks until it is done, with a request that may come twice.
func (m *mixed) requestUntilDone(kind string, c e2e.Client, method, path, body string) (e2e.Response, bool) {
	a, done, _ := m.request(kind, c, method, path, body)
	if !done {
		m.refuse(kind, a)
	}
	return a, done
}

// attempt asks once, for what a second request would do twice.
func (m *mixed) attempt(kind string, c e2e.Client, method, path, body string) (e2e.Response, bool) {
	a, done, unsure := m.requestOnce(kind, c, method, path, body)
	if !done && !unsure {
		m.refuse(kind, a)
	}
	return a, done
}

// decode decodes an answer, and refuses one that is another.
func (m *mixed) decode(kind string, a e2e.Response, to any) bool {
	if err := json.Unmarshal([]byte(a.Body), to); err != nil {
		m.refuse(kind, a)
		return false
	}
	return true
}

// frame posts the n-th frame of a connection.
func (m *mixed) frame(c, n int) {
	one := m.frames.Frame(c, n)
	if _, done := m.requestUntilDone(ofFrames, e2e.CarrierOf(m.g), "POST", "/webhooks/lorawan?event=up&decoder_id=counter", one.Body); done {
		m.note(ofFrames, one.DevEUI+" "+one.Time, "")
		m.frames.Acknowledge(one)
	}
}

// text hands over a message.
func (m *mixed) text(c, n int) {
	text, body := e2e.CountedMessage(c, n)
	if _, done := m.requestUntilDone(ofTexts, e2e.CarrierOf(m.g), "POST", "/inbound/sms/json", body); done {
		m.note(ofTexts, text, "")
	}
}

// joined hands over the three parts of a message, in an order that changes.
func (m *mixed) joined(c, n int) {
	var text strings.Builder
	parts := make([]string, 3)
	for p := range parts {
		piece := fmt.Sprintf("(part %d of message %d of %d)", p+1, n, c)
		text.WriteString(piece)
		parts[p] = fmt.Sprintf(`{"id": "joined-%d-%d-%d", "from": "4477010%05d", "to": "4478001%05d", "udh": "060804%04x03%02x", "text": %q}`,
			c, n, p, c, n%1000, n&0xffff, p+1, piece)
	}
	for p := range parts {
		if _, done := m.requestUntilDone(ofJoined, m.g.As("acme-all-0123456"), "POST", "/inbound/sms/json", parts[(p+n)%3]); !done {
			return
		}
	}
	m.note(ofJoined, text.String(), "")
}

// mixedText is a message to be sent; every third has three parts.
func mixedText(kind string, c, n int) string {
	text := fmt.Sprintf("%s %d of %d", kind, n, c)
	if n%3 == 2 {
		text += strings.Repeat(", again and again", 20)
	}
	return text
}

// order sends a text over REST, once however often it is asked.
func (m *mixed) order(kind, text string, more string) (id string, done bool) {
	key := text[:min(len(text), 40)]
	body := fmt.Sprintf(`{"destinations": ["447700900123"], "dlr_url": "%s/dlr?id=%%msgid&code=%%code", "message": %q%s}`, m.url, text, more)
	a, done := m.requestUntilDone(kind, e2e.CustomerOf(m.g).With("Idempotency-Key", key), "POST", "/v2/sms/send", body)
	var list struct{ Data []e2e.PendingMessage }
	if !done {
		return "", false
	}
	if !m.decode(kind, a, &list) || len(list.Data) == 0 {
		return "", false
	}
	return fmt.Sprint(list.Data[0].ID), true
}

func (m *mixed) send(c, n int) {
	text := mixedText("send", c, n)
	if id, done := m.order(ofSends, text, ""); done {
		m.note(ofSends, text, id)
	}
}

// soap sends a text over SOAP, where a request has no id.
func (m *mixed) soap(c, n int) {
	text := mixedText("soap", c, n)
	body := strings.Replace(e2e.SOAPEnvelope("acme", "447700900124"), ">hi<", ">"+text+"<", 1)
	a, done := m.attempt(ofSOAP, m.g.As("").With("Content-Type", e2e.SOAP11Type), "POST", "/soap", body)
	if !done {
		return
	}
	_, rest, found := strings.Cut(a.Body, "Accepted. Message ids: ")
	id, _, _ := strings.Cut(rest, ".")
	switch {
	case found:
		m.note(ofSOAP, text, id)
	case strings.Contains(a.Body, "<responsecode>4<"):
		m.mu.Lock()
		m.later[ofSOAP]++
		m.mu.Unlock()
	default:
		m.refuse(ofSOAP, a)
	}
}

// schedule orders messages for shortly and for tomorrow, and deletes every second
// of the latter.
func (m *mixed) schedule(c, n int) {
	text, at := fmt.Sprintf("scheduled %d of %d", n, c), time.Now().Add(shortly)
	if n%3 != 0 {
		text, at = text+" for "+e2e.TomorrowMark, time.Now().Add(24*time.Hour)
	}
	id, done := m.order(ofScheduled, text, fmt.Sprintf(`, "send_time": %q`, at.UTC().Format(time.RFC3339)))
	if !done {
		return
	}
	if n%3 != 1 {
		m.note(ofScheduled, text, id)
		return
	}
	a, done, unsure := m.request(ofCancelled, e2e.CustomerOf(m.g), "DELETE", "/v2/sms/"+id, "")
	if done || unsure && a.Status == http.StatusNotFound {
		m.note(ofCancelled, text, id)
		return
	}
	m.refuse(ofCancelled, a)
}

// use tells what a SIM used.
func (m *mixed) use(c, n int) {
	id := fmt.Sprintf("use-%d-%d", c, n)
	if _, done := m.requestUntilDone(ofUses, m.g.As("acme-all-0123456"), "POST", "/inbound/cdr/sim", e2e.UsageRecord(id, mixedSIM(c, n), 1)); done {
		m.note(ofUses, id, "")
	}
}

// call tells of a call.
func (m *mixed) call(c, n int) {
	id := fmt.Sprintf("call-%d-%d", c, n)
	body := fmt.Sprintf(`{"id": %q, "start": "2026-11-20T09:34:15Z", "from": "1", "to": "2"}`, id)
	if _, done := m.requestUntilDone(ofCalls, m.g.As("acme-all-0123456"), "POST", "/inbound/cdr/sip", body); done {
		m.note(ofCalls, id, "")
	}
}

// job has a SIM suspended or taken back into service, unless a job is under way.
func (m *mixed) job(c, n int) {
	acme, iccid := e2e.CustomerOf(m.g), mixedSIM(c, n)
	a, done := m.requestUntilDone(ofJobs, acme, "GET", "/v3/mno/"+iccid, "")
	var one struct{ Data e2e.SIMState }
	if !done || json.Unmarshal([]byte(a.Body), &one) != nil || one.Data.Current != one.Data.Requested {
		return
	}
	action := map[string]string{"active": "suspend", "suspended": "unsuspend"}[one.Data.Current]
	if a, done = m.attempt(ofJobs, acme, "POST", "/v3/mno/"+iccid+"/"+action, ""); !done {
		return
	}
	var begun struct{ Data struct{ ID string } }
	if m.decode(ofJobs, a, &begun) {
		m.note(ofJobs, begun.Data.ID, action+"_sim")
	}
}

// claim claims the ledger's token.
func (m *mixed) claim(int, int) {
	a, done := m.attempt(ofClaims, m.g.As("acme-all-0123456"), "POST", "/ledgers/tokens/claim", `{"token":"`+m.token+`"}`)
	var job struct{ JobID string }
	if done && m.decode(ofClaims, a, &job) {
		m.note(ofClaims, job.JobID, "")
	}
}

// subscriber registers one.
func (m *mixed) subscriber(c, n int) {
	surname := fmt.Sprintf("subscriber %d of %d", n, c)
	body := fmt.Sprintf(`{"forename": "A", "surname": %q, "address": "C", "post_code": "D", "contact_no": "1"}`, surname)
	if a, done := m.attempt(ofSubscribers, e2e.CustomerOf(m.g), "POST", "/v3/mno/subscriber/register", body); done {
		m.note(ofSubscribers, surname, a.Body)
	}
}

// device makes one, and deletes every second.
func (m *mixed) device(c, n int) {
	acme, identifier := m.g.As("acme-all-0123456"), fmt.Sprintf("made-%d-%d", c, n)
	body := fmt.Sprintf(`{"location_id": "yard", "decoder_id": "sent", "identifier": %q, "name": "Made"}`, identifier)
	a, done := m.attempt(ofDevices, acme, "POST", "/iot/devices/other", body)
	var made struct{ Data struct{ ID string } }
	if !done || !m.decode(ofDevices, a, &made) {
		return
	}
	if n%2 == 0 {
		m.note(ofDevices, identifier, made.Data.ID)
		return
	}
	a, done, unsure := m.request(ofDeleted, acme, "DELETE", "/iot/devices/"+made.Data.ID, "")
	if done || unsure && (a.Status == http.StatusNotFound || a.Status == http.StatusUnprocessableEntity) {
		m.note(ofDeleted, identifier, made.Data.ID)
		return
	}
	m.refuse(ofDeleted, a)
}

// counts is how much of each kind is acknowledged.
func (m *mixed) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int{}
	for _, kind := range mixedKinds() {
		out[kind] = len(m.acked[kind])
	}
	return out
}

// awaitProgress waits until so much more of each kind is acknowledged.
func (m *mixed) awaitProgress(t *testing.T, more int) {
	t.Helper()
	before := m.counts()
	relaytest.Eventually(t, "every kind of load goes on", func() (any, bool) {
		now := m.counts()
		for _, kind := range mixedKinds() {
			if now[kind] < before[kind]+more {
				return fmt.Sprintf("%s: %d, before %d; away: %v; refused: %.2000v", kind, now[kind], before[kind], m.seen(m.later), m.seen(m.refused)), false
			}
		}
		return nil, true
	})
}

// seen copies one of the load's maps.
func (m *mixed) seen(of map[string]int) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(of)
}

// endpoint takes the account's callbacks: it keeps how often something came, and with
// which ids. What came is "message …", "report <id> <code>" or "<type> <job>".
type endpoint struct {
	*e2e.Arrivals
	url string
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{Arrivals: e2e.NewArrivals()}
	e.url = e2e.NewServer(t, e)
	return e
}

func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := r.URL.Query()
	switch r.URL.Path {
	case "/load":
		e.Add("message "+q.Get("m"), q.Get("i"), r)
	case "/dlr":
		e.Add("report "+q.Get("id")+" "+q.Get("code"), "", r)
	default:
		var event struct {
			ID, Type string
			Data     struct {
				ID    string
				JobID string `json:"job_id"`
			}
		}
		_ = json.Unmarshal(body, &event)
		e.Add(event.Type+" "+event.Data.ID+event.Data.JobID, event.ID, r)
	}
}
