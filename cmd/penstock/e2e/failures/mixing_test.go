package failures

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// mixingWorkers is the number of connections that post at the same time.
const mixingWorkers = 16

// TestNoValueIsInAnotherRecord sends interleaved requests to all interfaces over reused
// connections. Every value of a request contains the number of the request, and the requests
// differ in length: a value that was kept without a copy would contain bytes of another
// request. No answer, record or delivery may name two requests, and none may be missing.
// There are 2,000 requests, a million in a soak, or PENSTOCK_TEST_MIXING.
func TestNoValueIsInAnotherRecord(t *testing.T) {
	t.Parallel()
	m := newMixing(t)
	var next atomic.Int64
	var workers sync.WaitGroup
	began, count := time.Now(), e2e.Rounds(t, "PENSTOCK_TEST_MIXING", 2_000, 1_000_000)
	for range mixingWorkers {
		workers.Go(func() {
			for n := int(next.Add(1)); n <= count; n = int(next.Add(1)) {
				m.request(n)
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	m.g.AwaitProcessed()
	m.check(t)
	t.Logf("%d requests in %s, %v; %d mistakes", count, took.Round(time.Second), m.counts(), len(m.mistakes))
}

// mixing is a load of requests and the record of the acknowledged ones.
type mixing struct {
	g           *e2e.Gateway
	iot, mobile e2e.Client
	soap        e2e.Client
	start       time.Time

	mu       sync.Mutex
	sent     map[string]map[int]bool // kind → the numbers of the requests
	frames   *e2e.CounterFrames
	arrived  map[int]bool // messages at the endpoint
	mistakes []string
}

func newMixing(t *testing.T) *mixing {
	t.Helper()
	m := &mixing{
		start: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), sent: map[string]map[int]bool{},
		frames: e2e.NewCounterFrames(t), arrived: map[int]bool{},
	}
	endpoint := e2e.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n := m.requestIn("a delivery", r.URL.RawQuery); n > 0 {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.arrived[n] = true
		}
	}))
	inventory := e2e.Fixture(t, "mixed.yaml", "callback_url: SINK/events", "callback_url: http://127.0.0.1:9/", "SINK", endpoint, "m=%m&i=%i", "m=%m&i=%i&o=%o&d=%d", "SIMS", "")
	m.g = e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	m.iot, m.mobile, m.soap = m.g.As("acme-all-0123456"), e2e.CustomerOf(m.g), m.g.As("").With("Content-Type", e2e.SOAP11Type)
	return m
}

// tag and number return texts that name a request. pad returns a padding whose length depends
// on the request.
func tag(n int) string { return fmt.Sprintf("no-%08d", n) }

func number(n int) string { return fmt.Sprintf("4478%08d", n) }

func pad(n int) string { return strings.Repeat("-", n*7%83) }

// requestPattern matches the names of requests in a text.
var requestPattern = regexp.MustCompile(`(?:no-|4478)(\d{8})`)

// requestIn returns the number of the request that a text names, or 0. It records a mistake
// if the text names two requests.
func (m *mixing) requestIn(label, text string) (n int) {
	for _, found := range requestPattern.FindAllStringSubmatch(text, -1) {
		k, _ := strconv.Atoi(found[1])
		if n != 0 && k != n {
			m.mistake("%s names the requests %d and %d: %.600s", label, n, k, text)
		}
		n = k
	}
	return n
}

func (m *mixing) mistake(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mistakes = append(m.mistakes, fmt.Sprintf(format, args...))
}

// kinds returns the methods that send a request, which take turns. A million requests create
// fewer devices than the 100,000 that an account may have from its frames.
func (m *mixing) kinds() []func(n int) {
	return []func(n int){
		m.frame, m.json, m.kannel, m.frame, m.call, m.vonage, m.generic, m.frame, m.json, m.send, m.call,
		m.frame, m.kannel, m.json, m.soapSend, m.device, m.frame, m.subscriber, m.reading, m.call, m.token, m.lookup,
	}
}

func (m *mixing) request(n int) { kinds := m.kinds(); kinds[n%len(kinds)](n) }

// acknowledged sends a request and records it. It records a mistake if the request fails or
// the answer names another request.
func (m *mixing) acknowledged(kind string, n int, c e2e.Client, method, path, body string) (e2e.Response, bool) {
	a, err := c.Try(method, path, body)
	if err != nil || a.Status != http.StatusOK && a.Status != http.StatusCreated {
		m.mistake("%s %d: %d %.300s %v", kind, n, a.Status, a.Body, err)
		return a, false
	}
	if got := m.requestIn(kind+"'s answer", a.Body); got != 0 && got != n {
		m.mistake("%s %d got the answer to %d: %.600s", kind, n, got, a.Body)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent[kind] == nil {
		m.sent[kind] = map[int]bool{}
	}
	m.sent[kind][n] = true
	return a, true
}

const (
	mixedFrames, mixedGeneric, mixedSMS, mixedCalls, mixedSends = "frame", "generic reading", "SMS", "call", "send"
	mixedSOAP, mixedDevices, mixedPeople, mixedTokens           = "SOAP send", "device", "subscriber", "token"
)

// frame posts a frame whose value is its number. 400 frames have the same device.
func (m *mixing) frame(n int) {
	devEUI, frameTime := fmt.Sprintf("70b3d57e%08x", n/400), m.start.Add(time.Duration(n%400)*time.Second)
	payload := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte{1, 100}, uint32(n)))
	body := fmt.Sprintf(`{"pad":%q,"deviceInfo":{"devEui":%q,"deviceName":"shared"},"deduplicationId":"8b2f6c1e-5d0a-4f7e-9a43-%012x","time":%q,"fCnt":%d,"fPort":1,"data":%q}`,
		pad(n), devEUI, n, frameTime.Format(time.RFC3339), n, payload)
	if _, done := m.acknowledged(mixedFrames, n, m.iot, "POST", "/webhooks/lorawan?event=up&decoder_id=counter", body); done {
		m.frames.Acknowledge(e2e.CounterFrame{DevEUI: devEUI, Time: frameTime.Format(time.DateTime), Value: float64(n)})
	}
}

// generic posts a reading of a new device, whose identifier is in the path. The answer has
// the value.
func (m *mixing) generic(n int) {
	a, done := m.acknowledged(mixedGeneric, n, m.iot, "POST", "/webhooks/generic/"+tag(n)+"?decoder_id=sent&pad="+pad(n), fmt.Sprintf(`{"pad":%q,"count":%d}`, pad(n), n))
	if done && !strings.Contains(a.Body, fmt.Sprintf(`"value":%d,`, n)) {
		m.mistake("generic reading %d: %.600s", n, a.Body)
	}
}

func (m *mixing) json(n int) {
	body := fmt.Sprintf(`{"pad":%q,"id":%q,"from":%q,"to":%q,"text":%q}`, pad(n), tag(n), number(n), number(n), tag(n)+pad(n))
	m.acknowledged(mixedSMS, n, m.iot, "POST", "/inbound/sms/json", body)
}

func (m *mixing) kannel(n int) {
	q := url.Values{"pad": {pad(n)}, "id": {tag(n)}, "from": {number(n)}, "to": {number(n)}, "text": {tag(n) + pad(n)}, "coding": {"0"}}
	m.acknowledged(mixedSMS, n, m.iot, "GET", "/inbound/sms/kannel?"+q.Encode(), "")
}

func (m *mixing) vonage(n int) {
	q := url.Values{"pad": {pad(n)}, "messageId": {tag(n)}, "msisdn": {number(n)}, "to": {number(n)}, "text": {tag(n) + pad(n)}, "type": {"text"}}
	m.acknowledged(mixedSMS, n, m.iot.With("Content-Type", "application/x-www-form-urlencoded"), "POST", "/inbound/sms/vonage", q.Encode())
}

func (m *mixing) call(n int) {
	body := fmt.Sprintf(`{"id":%q,"start":"2026-11-20T09:34:15Z","from":%q,"to":%q}`, tag(n), number(n), tag(n)+pad(n%40))
	m.acknowledged(mixedCalls, n, m.iot, "POST", "/inbound/cdr/sip", body)
}

// send schedules a message for tomorrow and repeats the request with the same Idempotency-Key.
// Both answers must be equal.
func (m *mixing) send(n int) {
	body := fmt.Sprintf(`{"destinations":[%q],"originator":%q,"send_time":%q,"message":%q}`, number(n), number(n), m.start.Add(36*time.Hour).Format(time.RFC3339), tag(n)+pad(n))
	c := m.mobile.With("Idempotency-Key", tag(n)+pad(n))
	first, done := m.acknowledged(mixedSends, n, c, "POST", "/v2/sms/send", body)
	if second, repeated := m.acknowledged(mixedSends, n, c, "POST", "/v2/sms/send", body); done && repeated && second.Body != first.Body {
		m.mistake("send %d: %s, then %s", n, first.Body, second.Body)
	}
}

func (m *mixing) soapSend(n int) {
	body := strings.Replace(e2e.SOAPEnvelope("acme", number(n)), ">hi<", ">"+tag(n)+pad(n)+"<", 1)
	if a, done := m.acknowledged(mixedSOAP, n, m.soap, "POST", "/soap", body); done && !strings.Contains(a.Body, "Accepted. Message ids: ") {
		m.mistake("SOAP send %d: %s", n, a.Body)
	}
}

func (m *mixing) device(n int) {
	body := fmt.Sprintf(`{"pad":%q,"location_id":"yard","decoder_id":"sent","identifier":%q,"name":%q}`, pad(n), tag(n), tag(n)+" "+pad(n%40))
	if _, done := m.acknowledged(mixedDevices, n, m.iot, "POST", "/iot/devices/other", body); done {
		m.acknowledged(mixedDevices, n, m.iot, "GET", "/iot/devices/identifier/"+tag(n), "")
	}
}

func (m *mixing) subscriber(n int) {
	body := fmt.Sprintf(`{"forename":%q,"surname":%q,"address":%q,"post_code":"p","contact_no":%q,"contact_email":"%s@example.com"}`, tag(n), tag(n), tag(n)+pad(n), number(n), tag(n))
	m.acknowledged(mixedPeople, n, m.mobile, "POST", "/v3/mno/subscriber/register", body)
}

// reading adds readings over REST to the device of an earlier request.
func (m *mixing) reading(n int) {
	target := n - n%len(m.kinds()) + 6 // the number target a generic reading
	a, err := m.iot.Try("GET", "/iot/devices/identifier/"+tag(target), "")
	var found struct{ ID string }
	if err != nil || a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &found) != nil {
		return // the device does not exist yet
	}
	if got := m.requestIn("a device", a.Body); got != target {
		m.mistake("device %d got the answer to %d", target, got)
	}
	body := fmt.Sprintf(`{"readings":[{"key":"count","value":%d}]}`, target)
	if a, err := m.iot.Try("POST", "/iot/devices/"+found.ID+"/readings", body); err != nil || a.Status >= 500 {
		m.mistake("reading %d: %d %s %v", n, a.Status, a.Body, err)
	}
}

func (m *mixing) token(n int) {
	if n%10 != 0 { // a token takes as long as a hundred frames
		m.lookup(n)
		return
	}
	m.acknowledged(mixedTokens, n, m.iot, "POST", "/ledgers/assets/tokens", fmt.Sprintf(`{"metadata":{"a":%q,"b":%q}}`, tag(n), tag(n)+pad(n)))
}

// lookup requests records that do not exist. The answers may name no other request.
func (m *mixing) lookup(n int) {
	for _, path := range []string{"/iot/devices/identifier/none-" + tag(n), "/iot/devices/" + tag(n) + "/readings?pad=" + pad(n), "/iot/decoders/" + tag(n), "/ledgers/tokens/" + tag(n) + "/history"} {
		a, err := m.iot.With("X-Request-Id", tag(n)+pad(n%30)).Try("GET", path, "")
		if err != nil || a.Status < 400 || a.Status >= 500 {
			m.mistake("%s: %d %s %v", path, a.Status, a.Body, err)
		}
		if got := m.requestIn("an error", a.Body+" "+fmt.Sprint(a.Header)); got != 0 && got != n {
			m.mistake("%s got the answer to %d: %s %v", path, got, a.Body, a.Header)
		}
	}
}

func (m *mixing) counts() map[string]int {
	totals := map[string]int{}
	for kind, numbers := range m.sent {
		totals[kind] = len(numbers)
	}
	return totals
}

// check reads all records and fails the test for each mistake, up to 20.
func (m *mixing) check(t *testing.T) {
	t.Helper()
	m.g.HTTP.Timeout = 5 * relaytest.Patience // the lists of a million requests are long
	m.frames.Check(t, m.iot)
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.arrived), len(m.arrived) >= len(m.sent[mixedSMS])
	})
	m.complete(mixedSMS, m.arrived)
	calls := map[int]bool{}
	for _, row := range m.mobile.DownloadArchive(m.mobile.RequestArchive(e2e.ArchiveOfNovember))["cdr-20261101-20261130.csv"] {
		calls[m.requestIn("a row of the archive", row)] = true
	}
	m.complete(mixedCalls, calls)
	for kind, list := range map[string]struct {
		path string
		c    e2e.Client
	}{mixedSends: {"/v2/sms/pending", m.mobile}, mixedDevices: {"/iot/devices", m.iot}, mixedPeople: {"/v3/mno/subscriber", m.mobile}} {
		m.complete(kind, m.listed(list.path, e2e.ListNumbered[json.RawMessage](list.c, list.path)))
	}
	const messages, events = "/admin/messages?account=1&limit=1000", "/admin/events?limit=1000"
	m.complete(mixedSOAP, m.listed(messages, e2e.List[json.RawMessage](m.g.Admin(), messages)))
	m.listed(events, e2e.List[json.RawMessage](m.g.Admin(), events)) // the path, the query and the body of each post
	for _, mistake := range m.mistakes[:min(len(m.mistakes), 20)] {
		t.Error(mistake)
	}
	if len(m.mistakes) > 20 {
		t.Errorf("%d mistakes in all", len(m.mistakes))
	}
}

// complete checks that each acknowledged request of a kind has its record.
func (m *mixing) complete(kind string, found map[int]bool) {
	for _, n := range slices.Sorted(maps.Keys(m.sent[kind])) {
		if !found[n] {
			m.mistake("%s %d has no record", kind, n)
		}
	}
}

// listed returns the numbers of the requests that the records of a list name.
func (m *mixing) listed(path string, records []json.RawMessage) map[int]bool {
	numbers := map[int]bool{}
	for _, record := range records {
		numbers[m.requestIn("a record of "+path, string(record))] = true
	}
	return numbers
}
