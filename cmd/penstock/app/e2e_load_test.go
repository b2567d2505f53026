package app

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The load: connections of each kind, the pause between two posts of one, and
// the devices that one connection posts for.
const (
	connections = 4
	pace        = 5 * time.Millisecond
	devicesEach = 50
)

// load posts frames and messages from several connections and remembers what
// was acknowledged.
type load struct {
	g    *gateway
	from time.Time // of the first sample
	quit chan struct{}
	work sync.WaitGroup

	mu      sync.Mutex
	frames  map[string]map[string]float64 // devEUI → time → value
	texts   map[string]bool
	refused map[string]int // answers that were no 2xx, and errors
	slowest time.Duration
}

func (g *gateway) load() *load {
	l := &load{
		g: g, from: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), quit: make(chan struct{}),
		frames: map[string]map[string]float64{}, texts: map[string]bool{}, refused: map[string]int{},
	}
	body := fixture(g.t, "chirpstack/up.json")
	for c := range connections {
		l.work.Go(func() { l.repeat(func(n int) { l.frame(body, c, n) }) })
		l.work.Go(func() { l.repeat(func(n int) { l.message(c, n) }) })
	}
	return l
}

// repeat makes one post after the other until the load ends.
func (l *load) repeat(post func(n int)) {
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

// end stops the load once what is under way has its answer.
func (l *load) end() {
	close(l.quit)
	l.work.Wait()
}

// send posts and reports whether the post was acknowledged.
func (l *load) send(path, body string) bool {
	began := time.Now()
	a, err := l.g.as("acme-all-0123456").try(http.MethodPost, path, body)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	switch {
	case err != nil:
		l.refused["no answer"]++
	case a.status < 200 || a.status > 299:
		l.refused[fmt.Sprintf("%d %s", a.status, a.body)]++
	default:
		return true
	}
	return false
}

// frame posts the n-th frame of a connection; its value and time are its own.
func (l *load) frame(body string, c, n int) {
	devEUI := fmt.Sprintf("70b3d57e%02x%06x", c, n%devicesEach)
	at, value := l.from.Add(time.Duration(n/devicesEach)*time.Second), uint32(c<<24|n)
	payload := binary.BigEndian.AppendUint32([]byte{1, 100}, value)
	body = strings.NewReplacer(
		"70b3d57ed0001234", devEUI, "8b2f6c1e-5d0a-4f7e-9a43-0c1d5e7f9a21", fmt.Sprintf("8b2f6c1e-5d0a-4f7e-%04x-%012x", c, n),
		"2026-03-01T10:15:30.250Z", at.Format(time.RFC3339), "A2cBEARoeQ==", base64.StdEncoding.EncodeToString(payload),
	).Replace(body)
	if !l.send("/webhooks/lorawan?event=up&decoder_id=counter", body) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frames[devEUI] == nil {
		l.frames[devEUI] = map[string]float64{}
	}
	l.frames[devEUI][at.Format(time.DateTime)] = float64(value)
}

// message hands over the n-th message of a connection; its text is its own.
func (l *load) message(c, n int) {
	text := fmt.Sprintf("message %d of %d", n, c)
	body := fmt.Sprintf(`{"id": %q, "from": "447700900123", "to": "4478000%05d", "text": %q}`, text, n%1000, text)
	if !l.send("/inbound/sms/json", body) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts[text] = true
}

// tally is an endpoint that counts messages by their text.
type tally struct {
	mu   sync.Mutex
	seen map[string]*arrivals
}

// arrivals is how often a message came, and the ids it came with.
type arrivals struct {
	count      int
	ids, hooks map[string]bool
}

func newTally(t *testing.T) (*tally, string) {
	t.Helper()
	c := &tally{seen: map[string]*arrivals{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		q := r.URL.Query()
		a := c.seen[q.Get("m")]
		if a == nil {
			a = &arrivals{ids: map[string]bool{}, hooks: map[string]bool{}}
			c.seen[q.Get("m")] = a
		}
		a.count++
		a.ids[q.Get("i")], a.hooks[r.Header.Get("Webhook-Id")] = true, true
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

// missing lists the acknowledged messages that did not come yet.
func (c *tally) missing(acknowledged map[string]bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, text := range slices.Sorted(maps.Keys(acknowledged)) {
		if c.seen[text] == nil {
			out = append(out, text)
		}
	}
	return out
}

// check fails the test unless everything acknowledged is there, and every
// repetition had the same ids. It is for after the end of the load.
func (l *load) check(t *testing.T, c *tally) {
	t.Helper()
	ended := time.Now()
	l.g.settled()
	processed := time.Since(ended)
	l.checkFrames(t)
	eventually(t, "every acknowledged message is delivered", func() (any, bool) {
		lost := c.missing(l.texts)
		return fmt.Sprintf("%d of %d are missing: %.30q", len(lost), len(l.texts), lost), len(lost) == 0
	})
	t.Logf("everything is processed %s after the end of the load, delivered after %s",
		processed.Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	repeated := 0
	for text, a := range c.seen {
		if a.count > 1 {
			repeated++
		}
		if len(a.ids) != 1 || len(a.hooks) != 1 || a.hooks[""] {
			t.Errorf("%q came with the ids %v and %v, want one of each", text, slices.Collect(maps.Keys(a.ids)), slices.Collect(maps.Keys(a.hooks)))
		}
	}
	t.Logf("%d messages acknowledged, %d arrived, %d of them more than once; slowest answer %s; not acknowledged: %v",
		len(l.texts), len(c.seen), repeated, l.slowest.Round(time.Millisecond), l.refused)
}

// checkFrames compares the readings of every device with what was acknowledged.
func (l *load) checkFrames(t *testing.T) {
	t.Helper()
	acme, total := l.g.as("acme-all-0123456"), 0
	var lost []string
	for _, devEUI := range slices.Sorted(maps.Keys(l.frames)) {
		total += len(l.frames[devEUI])
		stored := acme.stored(devEUI)
		for at, value := range l.frames[devEUI] {
			if got, ok := stored[at]; !ok || got != value {
				lost = append(lost, fmt.Sprintf("%s at %s: %v, want %v", devEUI, at, got, value))
			}
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		t.Errorf("%d of %d acknowledged frames are lost:\n%s", len(lost), total, strings.Join(lost[:min(len(lost), 40)], "\n"))
	}
	t.Logf("%d frames acknowledged, of %d devices", total, len(l.frames))
}

// stored returns a device's readings by their time. Each time has one.
func (c caller) stored(devEUI string) map[string]float64 {
	c.g.t.Helper()
	var found struct{ ID string }
	if a := c.get("/iot/devices/identifier/" + devEUI); a.status == 200 {
		a.into(c.g.t, &found)
	}
	out := map[string]float64{}
	if found.ID == "" {
		return out
	}
	var list struct{ Data []reading }
	c.get("/iot/devices/"+found.ID+"/readings?limit=1000").into(c.g.t, &list)
	if len(list.Data) == 1000 {
		c.g.t.Fatal("a device has more readings than one answer holds: load with more devices")
	}
	for _, r := range list.Data {
		if _, twice := out[r.ReadingDate]; twice {
			c.g.t.Errorf("%s has two readings at %s", devEUI, r.ReadingDate)
		}
		if r.Value != nil {
			out[r.ReadingDate] = *r.Value
		}
	}
	return out
}
