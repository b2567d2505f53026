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
	"github.com/penstock/penstock/relay/relaytest"
)

// peer is an operator's server that implements docs/operator.md. It performs the command or
// message of a key once and responds to each request.
type peer struct {
	url string

	mu      sync.Mutex
	effects map[string]int    // commands and messages performed, by key
	bodies  map[string]string // of the commands and messages performed, by key
	headers []http.Header
	paths   []string
	// answer returns the response to the n-th request of a key; nil means completed. header is
	// Retry-After. The status 0 closes the connection after the effect.
	answer   func(key string, n int) (status int, header, body string)
	requests map[string]int // by key
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{effects: map[string]int{}, bodies: map[string]string{}, requests: map[string]int{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.headers, p.paths = append(p.headers, r.Header.Clone()), append(p.paths, r.Method+" "+r.URL.Path)
	key := r.Header.Get("Idempotency-Key")
	p.requests[key]++
	status, header, text := http.StatusOK, "", `{"status":"completed"}`
	if p.answer != nil {
		status, header, text = p.answer(key, p.requests[key])
	}
	if key != "" && status < 300 {
		p.perform(key, string(body))
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

// perform performs the command or message of a key, once.
func (p *peer) perform(key, body string) {
	if _, performed := p.bodies[key]; !performed {
		p.bodies[key] = body
		p.effects[key]++
	}
}

// body returns the body of the performed command or message of a key.
func (p *peer) body(t *testing.T, key string) map[string]any {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var m map[string]any
	relaytest.NoError(t, json.Unmarshal([]byte(p.bodies[key]), &m))
	return m
}

// firstRequest returns the method with the path, and the header, of the first request.
func (p *peer) firstRequest(t *testing.T) (string, http.Header) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.paths) == 0 {
		t.Fatal("no request arrived")
	}
	return p.paths[0], p.headers[0]
}

// count returns the number of requests of a key and the number of their effects.
func (p *peer) count(key string) (requests, effects int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[key], p.effects[key]
}

// client returns an HTTP back end that calls the peer.
func (p *peer) client(t *testing.T, o HTTPOptions) *HTTP {
	t.Helper()
	client := relaytest.Must(httpout.New(httpout.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 2 * time.Second,
	}))(t)
	t.Cleanup(client.Close)
	o.URL, o.Token = p.url+"/v1/", "t0"
	return relaytest.Must(NewHTTP(client, o))(t)
}
