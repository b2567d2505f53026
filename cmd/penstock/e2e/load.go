package e2e

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// StartLoad starts a load with eight connections.
func (g *Gateway) StartLoad() *Load { return g.startLoad(Connections) }

// StartLightLoad starts a load with two connections.
func (g *Gateway) StartLightLoad() *Load { return g.startLoad(1) }

func (g *Gateway) startLoad(connections int) *Load {
	l := &Load{
		G: g, From: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), quit: make(chan struct{}),
		Frames: map[string]map[string]float64{}, Texts: map[string]bool{}, Refused: map[string]int{},
	}
	body := Fixture(g.T, "chirpstack/up.json")
	for c := range connections {
		l.work.Go(func() { l.repeat(func(n int) { l.Frame(body, c, n) }) })
		l.work.Go(func() { l.repeat(func(n int) { l.Message(c, n) }) })
	}
	return l
}

// SleepRandomly lets a random time pass, up to a limit.
func SleepRandomly(random *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(most))))
}

// The load: connections of each kind, the pause between two posts of one, and
// the devices that one connection posts for.
const (
	Connections = 4
	pace        = 5 * time.Millisecond
	DevicesEach = 50
)

// Load posts frames and messages from several connections and records the
// acknowledged ones.
type Load struct {
	G    *Gateway
	From time.Time // of the first sample
	quit chan struct{}
	work sync.WaitGroup

	Mu      sync.Mutex
	Frames  map[string]map[string]float64 // devEUI → time → value
	Texts   map[string]bool
	Refused map[string]int // answers that were no 2xx, and errors
	slowest time.Duration
}

// repeat makes one post after the other until the load ends.
func (l *Load) repeat(post func(n int)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.quit:
			return
		case <-tick.C:
			post(n)
		}
	}
}

// End stops the load when all requests in flight are answered.
func (l *Load) End() {
	close(l.quit)
	l.work.Wait()
}

// send posts and reports whether the post was acknowledged.
func (l *Load) send(path, body string) bool {
	began := time.Now()
	a, err := l.G.As("acme-all-0123456").Try(http.MethodPost, path, body)
	took := time.Since(began)
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.slowest = max(l.slowest, took)
	switch {
	case err != nil:
		l.Refused["no answer"]++
	case a.Status < 200 || a.Status > 299:
		l.Refused[fmt.Sprintf("%d %s", a.Status, a.Body)]++
	default:
		return true
	}
	return false
}

// Frame posts the n-th frame of a connection; its value and time are unique.
func (l *Load) Frame(body string, c, n int) {
	devEUI := fmt.Sprintf("70b3d57e%02x%06x", c, n%DevicesEach)
	at, value := l.From.Add(time.Duration(n/DevicesEach)*time.Second), uint32(c<<24|n)
	payload := binary.BigEndian.AppendUint32([]byte{1, 100}, value)
	body = strings.NewReplacer(
		"70b3d57ed0001234", devEUI, "8b2f6c1e-5d0a-4f7e-9a43-0c1d5e7f9a21", fmt.Sprintf("8b2f6c1e-5d0a-4f7e-%04x-%012x", c, n),
		"2026-03-01T10:15:30.250Z", at.Format(time.RFC3339), "A2cBEARoeQ==", base64.StdEncoding.EncodeToString(payload),
	).Replace(body)
	if !l.send("/webhooks/lorawan?event=up&decoder_id=counter", body) {
		return
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Frames[devEUI] == nil {
		l.Frames[devEUI] = map[string]float64{}
	}
	l.Frames[devEUI][at.Format(time.DateTime)] = float64(value)
}

// Message posts the n-th message of a connection; its text is unique.
func (l *Load) Message(c, n int) {
	text := fmt.Sprintf("message %d of %d", n, c)
	body := fmt.Sprintf(`{"id": %q, "from": "447700900123", "to": "4478000%05d", "text": %q}`, text, n%1000, text)
	if !l.send("/inbound/sms/json", body) {
		return
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Texts[text] = true
}

// MessageCounter is an endpoint that counts messages by their text.
type MessageCounter struct {
	Mu   sync.Mutex
	Seen map[string]*MessageArrivals
}

// MessageArrivals is how often a message came, and the ids it came with.
type MessageArrivals struct {
	Count      int
	Ids, Hooks map[string]bool
}

// NewMessageCounter starts the endpoint and returns its URL.
func NewMessageCounter(t *testing.T) (*MessageCounter, string) {
	t.Helper()
	c := &MessageCounter{Seen: map[string]*MessageArrivals{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		q := r.URL.Query()
		a := c.Seen[q.Get("m")]
		if a == nil {
			a = &MessageArrivals{Ids: map[string]bool{}, Hooks: map[string]bool{}}
			c.Seen[q.Get("m")] = a
		}
		a.Count++
		a.Ids[q.Get("i")], a.Hooks[r.Header.Get("Webhook-Id")] = true, true
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

// Missing lists the acknowledged messages that did not come yet.
func (c *MessageCounter) Missing(acknowledged map[string]bool) []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var out []string
	for _, text := range slices.Sorted(maps.Keys(acknowledged)) {
		if c.Seen[text] == nil {
			out = append(out, text)
		}
	}
	return out
}

// Check fails the test unless everything acknowledged is there, and every
// repetition had the same ids. Call it after End.
func (l *Load) Check(t *testing.T, c *MessageCounter) {
	t.Helper()
	ended := time.Now()
	l.G.AwaitProcessed()
	processed := time.Since(ended)
	l.CheckFrames(t)
	relaytest.Eventually(t, "every acknowledged message is delivered", func() (any, bool) {
		lost := c.Missing(l.Texts)
		return fmt.Sprintf("%d of %d are missing: %.30q", len(lost), len(l.Texts), lost), len(lost) == 0
	})
	t.Logf("everything is processed %s after the end of the load, delivered after %s",
		processed.Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
	c.Mu.Lock()
	defer c.Mu.Unlock()
	repeated := 0
	for text, a := range c.Seen {
		if a.Count > 1 {
			repeated++
		}
		if len(a.Ids) != 1 || len(a.Hooks) != 1 || a.Hooks[""] {
			t.Errorf("%q came with the ids %v and %v, want one of each", text, slices.Collect(maps.Keys(a.Ids)), slices.Collect(maps.Keys(a.Hooks)))
		}
	}
	t.Logf("%d messages acknowledged, %d arrived, %d of them more than once; slowest answer %s; not acknowledged: %v",
		len(l.Texts), len(c.Seen), repeated, l.slowest.Round(time.Millisecond), l.Refused)
}

// CheckFrames compares the readings of every device with what was acknowledged.
func (l *Load) CheckFrames(t *testing.T) {
	t.Helper()
	acme, total := l.G.As("acme-all-0123456"), 0
	var lost []string
	for _, devEUI := range slices.Sorted(maps.Keys(l.Frames)) {
		total += len(l.Frames[devEUI])
		stored := acme.ReadingsByTime(devEUI)
		for at, value := range l.Frames[devEUI] {
			if got, ok := stored[at]; !ok || got != value {
				lost = append(lost, fmt.Sprintf("%s at %s: %v, want %v", devEUI, at, got, value))
			}
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		t.Errorf("%d of %d acknowledged frames are lost:\n%s", len(lost), total, strings.Join(lost[:min(len(lost), 40)], "\n"))
	}
	t.Logf("%d frames acknowledged, of %d devices", total, len(l.Frames))
}
