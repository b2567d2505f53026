package e2e

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// SleepRandomly sleeps for a random time below limit.
func SleepRandomly(random *rand.Rand, limit time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(limit))))
}

// Connections is the number of connections of each kind, pace is the time between two posts of a
// connection, and DevicesEach is the number of devices that a connection posts for.
const (
	Connections = 4
	pace        = 20 * time.Millisecond
	DevicesEach = 50
)

// Loop runs the connections of a load until End is called.
type Loop struct {
	pause       time.Duration // between two posts of a connection
	quit        chan struct{}
	connections sync.WaitGroup
}

// NewLoop returns a loop without connections.
func NewLoop(pause time.Duration) *Loop { return &Loop{pause: pause, quit: make(chan struct{})} }

// Go adds a connection that calls post with 0, 1, 2 and so on, one call after the other.
func (l *Loop) Go(post func(n int)) {
	l.connections.Go(func() {
		tick := time.NewTicker(l.pause)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.quit:
				return
			case <-tick.C:
				post(n)
			}
		}
	})
}

// End stops the connections and waits for the answers to requests in flight.
func (l *Loop) End() {
	close(l.quit)
	l.connections.Wait()
}

// CounterFrames creates frames of ChirpStack with unique values and times, and records the
// acknowledged frames.
type CounterFrames struct {
	start time.Time // time of the first frame
	body  string

	mu    sync.Mutex
	Acked map[string]map[string]float64 // devEUI → time → value
}

// CounterFrame is a frame with its value. Time has the API's format.
type CounterFrame struct {
	Body, DevEUI, Time string
	Value              float64
}

// NewCounterFrames returns CounterFrames without acknowledged frames.
func NewCounterFrames(t *testing.T) *CounterFrames {
	t.Helper()
	return &CounterFrames{
		start: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), body: Fixture(t, "chirpstack/up.json"),
		Acked: map[string]map[string]float64{},
	}
}

// Frame returns the n-th frame of a connection.
func (f *CounterFrames) Frame(connection, n int) CounterFrame {
	devEUI := fmt.Sprintf("70b3d57e%02x%06x", connection, n%DevicesEach)
	t, value := f.start.Add(time.Duration(n/DevicesEach)*time.Second), uint32(connection<<24|n)
	payload := binary.BigEndian.AppendUint32([]byte{1, 100}, value)
	body := strings.NewReplacer(
		"70b3d57ed0001234", devEUI, "8b2f6c1e-5d0a-4f7e-9a43-0c1d5e7f9a21", fmt.Sprintf("8b2f6c1e-5d0a-4f7e-%04x-%012x", connection, n),
		"2026-03-01T10:15:30.250Z", t.Format(time.RFC3339), "A2cBEARoeQ==", base64.StdEncoding.EncodeToString(payload),
	).Replace(f.body)
	return CounterFrame{body, devEUI, t.Format(time.DateTime), float64(value)}
}

// Acknowledge records a frame as acknowledged.
func (f *CounterFrames) Acknowledge(counterFrame CounterFrame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Acked[counterFrame.DevEUI] == nil {
		f.Acked[counterFrame.DevEUI] = map[string]float64{}
	}
	f.Acked[counterFrame.DevEUI][counterFrame.Time] = counterFrame.Value
}

// Check fails the test unless every acknowledged frame has its reading.
func (f *CounterFrames) Check(t *testing.T, acme Client) {
	t.Helper()
	total := 0
	var lost []string
	for _, devEUI := range slices.Sorted(maps.Keys(f.Acked)) {
		total += len(f.Acked[devEUI])
		stored := acme.ReadingsByTime(devEUI)
		for timestamp, value := range f.Acked[devEUI] {
			if got, ok := stored[timestamp]; !ok || got != value {
				lost = append(lost, fmt.Sprintf("%s at %s: %v, want %v", devEUI, timestamp, got, value))
			}
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		t.Errorf("%d of %d acknowledged frames are lost:\n%s", len(lost), total, strings.Join(lost[:min(len(lost), 40)], "\n"))
	}
	t.Logf("%d frames acknowledged, of %d devices", total, len(f.Acked))
}

// Load posts frames and messages from several connections, and records the acknowledged frames and
// messages.
type Load struct {
	*Loop
	G      *Gateway
	Frames *CounterFrames

	mu      sync.Mutex
	Texts   map[string]bool // of acknowledged messages
	Refused map[string]int  // number of posts by refusal: status and body, or "no answer"
	slowest time.Duration
}

// NewLoad returns a load without connections.
func NewLoad(g *Gateway) *Load {
	g.T.Helper()
	return &Load{Loop: NewLoop(pace), G: g, Frames: NewCounterFrames(g.T), Texts: map[string]bool{}, Refused: map[string]int{}}
}

// StartLoad starts a load with a number of connections that post frames, and the same number
// that post messages.
func (g *Gateway) StartLoad(connections int) *Load {
	g.T.Helper()
	l := NewLoad(g)
	for c := range connections {
		l.Go(func(n int) { l.Frame(c, n) })
		l.Go(func(n int) { l.Message(c, n) })
	}
	return l
}

// send posts a body and reports whether it was acknowledged with a 2xx status.
func (l *Load) send(path, body string) bool {
	began := time.Now()
	resp, err := CarrierOf(l.G).Try(http.MethodPost, path, body)
	duration := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, duration)
	switch {
	case err != nil:
		l.Refused["no answer"]++
	case resp.Status < 200 || resp.Status > 299:
		l.Refused[fmt.Sprintf("%d %s", resp.Status, resp.Body)]++
	default:
		return true
	}
	return false
}

// Frame posts the n-th frame of a connection; its value and time are unique.
func (l *Load) Frame(c, n int) {
	if counterFrame := l.Frames.Frame(c, n); l.send("/webhooks/lorawan?event=up&decoder_id=counter", counterFrame.Body) {
		l.Frames.Acknowledge(counterFrame)
	}
}

// Message posts the n-th message of a connection; its text is unique.
func (l *Load) Message(c, n int) {
	text, body := CountedMessage(c, n)
	if !l.send("/inbound/sms/json", body) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Texts[text] = true
}

// CountedMessage returns the text of the n-th message of a connection, and its JSON body.
func CountedMessage(c, n int) (text, body string) {
	text = fmt.Sprintf("message %d of %d", n, c)
	return text, fmt.Sprintf(`{"id": %q, "from": "447700900123", "to": "4478000%05d", "text": %q}`, text, n%1000, text)
}

// AwaitMessages waits until n more messages are acknowledged.
func (l *Load) AwaitMessages(t *testing.T, n int) {
	t.Helper()
	acknowledged := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.Texts) }
	n += acknowledged()
	relaytest.Eventually(t, "more messages are acknowledged", func() (any, bool) { count := acknowledged(); return count, count >= n })
}

// Arrivals counts the requests that an endpoint received for each item, such as a message.
type Arrivals struct {
	Mu     sync.Mutex
	ByItem map[string]*Arrival
}

// Arrival counts the requests for an item, and collects the ids and webhook-ids of the requests.
type Arrival struct {
	Count           int
	IDs, WebhookIDs map[string]bool
}

// NewArrivals returns empty Arrivals.
func NewArrivals() *Arrivals { return &Arrivals{ByItem: map[string]*Arrival{}} }

// NewMessageCounter starts an endpoint that counts messages by their text, and returns
// its URL.
func NewMessageCounter(t *testing.T) (*Arrivals, string) {
	t.Helper()
	arrivals := NewArrivals()
	return arrivals, NewServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrivals.Add(r.URL.Query().Get("m"), r.URL.Query().Get("i"), r)
	}))
}

// Add counts a request for an item with an id.
func (a *Arrivals) Add(item, id string, r *http.Request) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	arrival := a.ByItem[item]
	if arrival == nil {
		arrival = &Arrival{IDs: map[string]bool{}, WebhookIDs: map[string]bool{}}
		a.ByItem[item] = arrival
	}
	arrival.Count++
	arrival.IDs[id], arrival.WebhookIDs[r.Header.Get("Webhook-Id")] = true, true
}

// MissingItems returns the expected items without a request, sorted.
func (a *Arrivals) MissingItems(expected iter.Seq[string]) (items []string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for item := range expected {
		if a.ByItem[item] == nil {
			items = append(items, item)
		}
	}
	slices.Sort(items)
	return items
}

// Repeated returns the number of items with several requests, and describes the items whose
// requests differ in the id or the webhook-id or have no webhook-id.
func (a *Arrivals) Repeated() (repeated int, mismatches []string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, item := range slices.Sorted(maps.Keys(a.ByItem)) {
		arrival := a.ByItem[item]
		if arrival.Count > 1 {
			repeated++
		}
		if len(arrival.IDs) != 1 || len(arrival.WebhookIDs) != 1 || arrival.WebhookIDs[""] {
			mismatches = append(mismatches, fmt.Sprintf("%q arrived %d times with the ids %v and the webhook-ids %v", item, arrival.Count, slices.Collect(maps.Keys(arrival.IDs)), slices.Collect(maps.Keys(arrival.WebhookIDs))))
		}
	}
	return repeated, mismatches
}

// Check fails the test unless every acknowledged frame is stored, every acknowledged message
// is delivered, and repeated requests for a message have the same ids. Call it after End.
func (l *Load) Check(t *testing.T, arrivals *Arrivals) {
	t.Helper()
	endedAt := time.Now()
	l.G.AwaitProcessed()
	processingTime := time.Since(endedAt)
	l.Frames.Check(t, CarrierOf(l.G))
	relaytest.Eventually(t, "every acknowledged message is delivered", func() (any, bool) {
		lost := arrivals.MissingItems(maps.Keys(l.Texts))
		return fmt.Sprintf("%d of %d are missing: %.30q", len(lost), len(l.Texts), lost), len(lost) == 0
	})
	t.Logf("every entry is processed %s after the end of the load, delivered after %s",
		processingTime.Round(time.Millisecond), time.Since(endedAt).Round(time.Millisecond))
	repeated, mismatches := arrivals.Repeated()
	for _, mismatch := range mismatches {
		t.Error(mismatch + ", want one id and one webhook-id")
	}
	t.Logf("%d messages acknowledged, %d arrived, %d of them more than once; slowest answer %s; not acknowledged: %v",
		len(l.Texts), len(arrivals.ByItem), repeated, l.slowest.Round(time.Millisecond), l.Refused)
}
