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

// TestNoValueIsInAnotherRecord sends interleaved requests to all interfaces over reused connections.
// Every value of a request contains the number of the request, and the requests differ in length: a
// value that was stored without a copy would contain bytes of another request. No answer, record or
// delivery may name two requests, and no record or delivery may be missing. There are 2,000 requests, a
// million in a soak, or PENSTOCK_TEST_MIXING.
func TestNoValueIsInAnotherRecord(t *testing.T) {
	t.Parallel()
	m := newMixing(t)
	var lastNumber atomic.Int64
	var workers sync.WaitGroup
	startedAt, count := time.Now(), e2e.Rounds(t, "PENSTOCK_TEST_MIXING", 2_000, 1_000_000)
	for range mixingWorkers {
		workers.Go(func() {
			for n := int(lastNumber.Add(1)); n <= count; n = int(lastNumber.Add(1)) {
				m.sendRequest(n)
			}
		})
	}
	workers.Wait()
	duration := time.Since(startedAt)
	m.g.AwaitProcessed()
	m.check(t)
	t.Logf("%d requests in %s, %v; %d mistakes", count, duration.Round(time.Second), m.counts(), len(m.mistakes))
}

// mixing is a load of requests, with the numbers of the acknowledged requests.
type mixing struct {
	g           *e2e.Gateway
	iot, mobile e2e.Client
	soap        e2e.Client
	start       time.Time

	mu                sync.Mutex
	acknowledged      map[string]map[int]bool // kind → numbers of acknowledged requests
	frames            *e2e.CounterFrames
	deliveredMessages map[int]bool // messages at the endpoint
	mistakes          []string
}

func newMixing(t *testing.T) *mixing {
	t.Helper()
	m := &mixing{
		start: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), acknowledged: map[string]map[int]bool{},
		frames: e2e.NewCounterFrames(t), deliveredMessages: map[int]bool{},
	}
	endpoint := e2e.NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n := m.requestIn("a delivery", r.URL.RawQuery); n > 0 {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.deliveredMessages[n] = true
		}
	}))
	inventory := e2e.Fixture(t, "mixed.yaml", "callback_url: SINK/events", "callback_url: http://127.0.0.1:9/", "SINK", endpoint, "m=%m&i=%i", "m=%m&i=%i&o=%o&d=%d", "SIMS", "")
	m.g = e2e.Start(t, e2e.Embedded(), inventory, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	m.iot, m.mobile, m.soap = m.g.WithToken("acme-all-0123456"), e2e.CustomerOf(m.g), m.g.WithToken("").With("Content-Type", e2e.SOAP11Type)
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
	for _, match := range requestPattern.FindAllStringSubmatch(text, -1) {
		otherN, _ := strconv.Atoi(match[1])
		if n != 0 && otherN != n {
			m.addMistake("%s names the requests %d and %d: %.600s", label, n, otherN, text)
		}
		n = otherN
	}
	return n
}

func (m *mixing) addMistake(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mistakes = append(m.mistakes, fmt.Sprintf(format, args...))
}

// kinds returns the methods that send the requests in turn. A million requests create fewer devices than
// 100,000, the limit of an account.
func (m *mixing) kinds() []func(n int) {
	return []func(n int){
		m.frame, m.json, m.kannel, m.frame, m.call, m.vonage, m.generic, m.frame, m.json, m.send, m.call,
		m.frame, m.kannel, m.json, m.soapSend, m.device, m.frame, m.subscriber, m.reading, m.call, m.token, m.lookup,
	}
}

func (m *mixing) sendRequest(n int) { kinds := m.kinds(); kinds[n%len(kinds)](n) }

// sendAcknowledged sends a request and records its number. It records a mistake if the request fails or
// if the answer names another request.
func (m *mixing) sendAcknowledged(kind string, n int, c e2e.Client, method, path, body string) (e2e.Response, bool) {
	resp, err := c.Try(method, path, body)
	if err != nil || resp.Status != http.StatusOK && resp.Status != http.StatusCreated {
		m.addMistake("%s %d: %d %.300s %v", kind, n, resp.Status, resp.Body, err)
		return resp, false
	}
	if got := m.requestIn(kind+"'s answer", resp.Body); got != 0 && got != n {
		m.addMistake("%s %d got the answer to %d: %.600s", kind, n, got, resp.Body)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.acknowledged[kind] == nil {
		m.acknowledged[kind] = map[int]bool{}
	}
	m.acknowledged[kind][n] = true
	return resp, true
}

const (
	mixedFrames, mixedGeneric, mixedSMS, mixedCalls, mixedSends = "frame", "generic reading", "SMS", "call", "send"
	mixedSOAP, mixedDevices, mixedSubscribers, mixedTokens      = "SOAP send", "device", "subscriber", "token"
)

// frame posts a frame with its number as value. The frames among 400 consecutive requests have the same
// device.
func (m *mixing) frame(n int) {
	devEUI, frameTime := fmt.Sprintf("70b3d57e%08x", n/400), m.start.Add(time.Duration(n%400)*time.Second)
	payload := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte{1, 100}, uint32(n)))
	body := fmt.Sprintf(`{"pad":%q,"deviceInfo":{"devEui":%q,"deviceName":"shared"},"deduplicationId":"8b2f6c1e-5d0a-4f7e-9a43-%012x","time":%q,"fCnt":%d,"fPort":1,"data":%q}`,
		pad(n), devEUI, n, frameTime.Format(time.RFC3339), n, payload)
	if _, ok := m.sendAcknowledged(mixedFrames, n, m.iot, "POST", "/webhooks/lorawan?event=up&decoder_id=counter", body); ok {
		m.frames.Acknowledge(e2e.CounterFrame{DevEUI: devEUI, Time: frameTime.Format(time.DateTime), Value: float64(n)})
	}
}

// generic posts a reading of a new device, with the identifier in the path. The answer has the value.
func (m *mixing) generic(n int) {
	resp, ok := m.sendAcknowledged(mixedGeneric, n, m.iot, "POST", "/webhooks/generic/"+tag(n)+"?decoder_id=sent&pad="+pad(n), fmt.Sprintf(`{"pad":%q,"count":%d}`, pad(n), n))
	if ok && !strings.Contains(resp.Body, fmt.Sprintf(`"value":%d,`, n)) {
		m.addMistake("generic reading %d: %.600s", n, resp.Body)
	}
}

func (m *mixing) json(n int) {
	body := fmt.Sprintf(`{"pad":%q,"id":%q,"from":%q,"to":%q,"text":%q}`, pad(n), tag(n), number(n), number(n), tag(n)+pad(n))
	m.sendAcknowledged(mixedSMS, n, m.iot, "POST", "/inbound/sms/json", body)
}

func (m *mixing) kannel(n int) {
	q := url.Values{"pad": {pad(n)}, "id": {tag(n)}, "from": {number(n)}, "to": {number(n)}, "text": {tag(n) + pad(n)}, "coding": {"0"}}
	m.sendAcknowledged(mixedSMS, n, m.iot, "GET", "/inbound/sms/kannel?"+q.Encode(), "")
}

func (m *mixing) vonage(n int) {
	q := url.Values{"pad": {pad(n)}, "messageId": {tag(n)}, "msisdn": {number(n)}, "to": {number(n)}, "text": {tag(n) + pad(n)}, "type": {"text"}}
	m.sendAcknowledged(mixedSMS, n, m.iot.With("Content-Type", "application/x-www-form-urlencoded"), "POST", "/inbound/sms/vonage", q.Encode())
}

func (m *mixing) call(n int) {
	body := fmt.Sprintf(`{"id":%q,"start":"2026-11-20T09:34:15Z","from":%q,"to":%q}`, tag(n), number(n), tag(n)+pad(n%40))
	m.sendAcknowledged(mixedCalls, n, m.iot, "POST", "/inbound/cdr/sip", body)
}

// send schedules a message for tomorrow and repeats the request with the same Idempotency-Key.
// Both answers must be equal.
func (m *mixing) send(n int) {
	body := fmt.Sprintf(`{"destinations":[%q],"originator":%q,"send_time":%q,"message":%q}`, number(n), number(n), m.start.Add(36*time.Hour).Format(time.RFC3339), tag(n)+pad(n))
	c := m.mobile.With("Idempotency-Key", tag(n)+pad(n))
	firstAnswer, ok := m.sendAcknowledged(mixedSends, n, c, "POST", "/v2/sms/send", body)
	if secondAnswer, repeatOK := m.sendAcknowledged(mixedSends, n, c, "POST", "/v2/sms/send", body); ok && repeatOK && secondAnswer.Body != firstAnswer.Body {
		m.addMistake("send %d: %s, then %s", n, firstAnswer.Body, secondAnswer.Body)
	}
}

func (m *mixing) soapSend(n int) {
	body := strings.Replace(e2e.SOAPEnvelope("acme", number(n)), ">hi<", ">"+tag(n)+pad(n)+"<", 1)
	if resp, ok := m.sendAcknowledged(mixedSOAP, n, m.soap, "POST", "/soap", body); ok && !strings.Contains(resp.Body, "Accepted. Message ids: ") {
		m.addMistake("SOAP send %d: %s", n, resp.Body)
	}
}

func (m *mixing) device(n int) {
	body := fmt.Sprintf(`{"pad":%q,"location_id":"yard","decoder_id":"sent","identifier":%q,"name":%q}`, pad(n), tag(n), tag(n)+" "+pad(n%40))
	if _, ok := m.sendAcknowledged(mixedDevices, n, m.iot, "POST", "/iot/devices/other", body); ok {
		m.sendAcknowledged(mixedDevices, n, m.iot, "GET", "/iot/devices/identifier/"+tag(n), "")
	}
}

func (m *mixing) subscriber(n int) {
	body := fmt.Sprintf(`{"forename":%q,"surname":%q,"address":%q,"post_code":"p","contact_no":%q,"contact_email":"%s@example.com"}`, tag(n), tag(n), tag(n)+pad(n), number(n), tag(n))
	m.sendAcknowledged(mixedSubscribers, n, m.mobile, "POST", "/v3/mno/subscriber/register", body)
}

// reading adds readings over REST to the device of an earlier request.
func (m *mixing) reading(n int) {
	target := n - n%len(m.kinds()) + 6 // the request with this number is a generic reading
	resp, err := m.iot.Try("GET", "/iot/devices/identifier/"+tag(target), "")
	var device struct{ ID string }
	if err != nil || resp.Status != http.StatusOK || json.Unmarshal([]byte(resp.Body), &device) != nil {
		return // the device does not exist yet
	}
	if got := m.requestIn("a device", resp.Body); got != target {
		m.addMistake("device %d got the answer to %d", target, got)
	}
	body := fmt.Sprintf(`{"readings":[{"key":"count","value":%d}]}`, target)
	if resp, err := m.iot.Try("POST", "/iot/devices/"+device.ID+"/readings", body); err != nil || resp.Status >= 500 {
		m.addMistake("reading %d: %d %s %v", n, resp.Status, resp.Body, err)
	}
}

func (m *mixing) token(n int) {
	if n%10 != 0 { // creating a token takes as long as a hundred frames
		m.lookup(n)
		return
	}
	m.sendAcknowledged(mixedTokens, n, m.iot, "POST", "/ledgers/assets/tokens", fmt.Sprintf(`{"metadata":{"a":%q,"b":%q}}`, tag(n), tag(n)+pad(n)))
}

// lookup requests records that do not exist. The answers must not name another request.
func (m *mixing) lookup(n int) {
	for _, path := range []string{"/iot/devices/identifier/none-" + tag(n), "/iot/devices/" + tag(n) + "/readings?pad=" + pad(n), "/iot/decoders/" + tag(n), "/ledgers/tokens/" + tag(n) + "/history"} {
		resp, err := m.iot.With("X-Request-Id", tag(n)+pad(n%30)).Try("GET", path, "")
		if err != nil || resp.Status < 400 || resp.Status >= 500 {
			m.addMistake("%s: %d %s %v", path, resp.Status, resp.Body, err)
		}
		if got := m.requestIn("an error", resp.Body+" "+fmt.Sprint(resp.Header)); got != 0 && got != n {
			m.addMistake("%s got the answer to %d: %s %v", path, got, resp.Body, resp.Header)
		}
	}
}

func (m *mixing) counts() map[string]int {
	totals := map[string]int{}
	for kind, numbers := range m.acknowledged {
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
		return len(m.deliveredMessages), len(m.deliveredMessages) >= len(m.acknowledged[mixedSMS])
	})
	m.checkComplete(mixedSMS, m.deliveredMessages)
	calls := map[int]bool{}
	for _, row := range m.mobile.DownloadArchive(m.mobile.RequestArchive(e2e.ArchiveOfNovember))["cdr-20261101-20261130.csv"] {
		calls[m.requestIn("a row of the archive", row)] = true
	}
	m.checkComplete(mixedCalls, calls)
	for kind, list := range map[string]struct {
		path   string
		client e2e.Client
	}{mixedSends: {"/v2/sms/pending", m.mobile}, mixedDevices: {"/iot/devices", m.iot}, mixedSubscribers: {"/v3/mno/subscriber", m.mobile}} {
		m.checkComplete(kind, m.requestsIn(list.path, e2e.ListNumbered[json.RawMessage](list.client, list.path)))
	}
	const messages, events = "/admin/messages?account=1&limit=1000", "/admin/events?limit=1000"
	m.checkComplete(mixedSOAP, m.requestsIn(messages, e2e.List[json.RawMessage](m.g.Admin(), messages)))
	m.requestsIn(events, e2e.List[json.RawMessage](m.g.Admin(), events)) // the path, the query and the body of each post
	for _, mistake := range m.mistakes[:min(len(m.mistakes), 20)] {
		t.Error(mistake)
	}
	if len(m.mistakes) > 20 {
		t.Errorf("number of mistakes = %d, want 0", len(m.mistakes))
	}
}

// checkComplete checks that each acknowledged request of a kind has its record.
func (m *mixing) checkComplete(kind string, found map[int]bool) {
	for _, n := range slices.Sorted(maps.Keys(m.acknowledged[kind])) {
		if !found[n] {
			m.addMistake("%s %d has no record", kind, n)
		}
	}
}

// requestsIn returns the numbers of the requests that the records of a list name.
func (m *mixing) requestsIn(path string, records []json.RawMessage) map[int]bool {
	numbers := map[int]bool{}
	for _, record := range records {
		numbers[m.requestIn("a record of "+path, string(record))] = true
	}
	return numbers
}
