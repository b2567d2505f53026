package operator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/httpout"
)

// peer is an operator's server as docs/operator.md has it: it does a command once,
// and tells how it stands as often as it is asked.
type peer struct {
	url string

	mu      sync.Mutex
	effects map[string]int    // commands and messages done, by key
	bodies  map[string]string // as they came first
	heads   []http.Header
	paths   []string
	// answer says what the n-th request of a key gets instead of the truth; a
	// status of 0 breaks the connection after the work is done.
	answer func(key string, n int) (status int, header, body string)
	asked  map[string]int
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{effects: map[string]int{}, bodies: map[string]string{}, asked: map[string]int{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads, p.paths = append(p.heads, r.Header.Clone()), append(p.paths, r.Method+" "+r.URL.Path)
	key := r.Header.Get("Idempotency-Key")
	p.asked[key]++
	status, header, text := http.StatusOK, "", `{"status":"completed"}`
	if p.answer != nil {
		status, header, text = p.answer(key, p.asked[key])
	}
	if key != "" && (status < 300 || status == 499) {
		p.work(key, string(body))
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if header != "" {
		w.Header().Set("Retry-After", header)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// work does what a key stands for, once.
func (p *peer) work(key, body string) {
	if _, known := p.bodies[key]; !known {
		p.bodies[key] = body
		p.effects[key]++
	}
}

// field reads a member of the body that came with a key.
func (p *peer) field(t *testing.T, key string) map[string]any {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var m map[string]any
	if err := json.Unmarshal([]byte(p.bodies[key]), &m); err != nil {
		t.Fatalf("%s: %q: %v", key, p.bodies[key], err)
	}
	return m
}

// first returns what the first request was, and its header.
func (p *peer) first() (string, http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paths[0], p.heads[0]
}

// count returns how often a key was asked for, and how often it acted.
func (p *peer) count(key string) (asked, effects int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[key], p.effects[key]
}

// reach is an HTTP back end that asks the peer.
func (p *peer) reach(t *testing.T, o HTTPOptions) *HTTP {
	t.Helper()
	client, err := httpout.New(httpout.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o.URL, o.Token = p.url+"/v1/", "t0"
	h, err := NewHTTP(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
