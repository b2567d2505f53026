package sending

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// kannelFault is what happens to Kannel's first post of a message.
type kannelFault struct {
	name   string
	number string // the messages it happens to are for it
	posts  int    // of each message that reach the gateway
	first  func(w http.ResponseWriter, r *http.Request, gateway http.Handler)
}

func kannelFaults() []kannelFault {
	answer := func(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
		}
	}
	return []kannelFault{
		{"the gateway is full", "447800010000", 1, answer(http.StatusServiceUnavailable)},
		{"the token is refused", "447800020000", 1, answer(http.StatusUnauthorized)},
		{"the gateway dies before it reads", "447800030000", 1, func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		}},
		{"the answer is lost", "447800040000", 2, func(_ http.ResponseWriter, r *http.Request, gateway http.Handler) {
			gateway.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}},
	}
}

// kannelFront stands before the gateway and spoils the first post of a message.
type kannelFront struct {
	mu      sync.Mutex
	tries   map[string]int // by Kannel's id
	taken   map[string]int // by number: posts that the gateway has answered with 200
	gateway http.Handler
}

func newKannelFront(t *testing.T, gateway string) *kannelFront {
	t.Helper()
	f := &kannelFront{tries: make(map[string]int), taken: make(map[string]int)}
	proxy := httputil.NewSingleHostReverseProxy(relaytest.Must(url.Parse(gateway))(t))
	proxy.ModifyResponse = func(r *http.Response) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.StatusCode == http.StatusOK {
			f.taken[r.Request.URL.Query().Get("to")]++
		}
		return nil
	}
	f.gateway = proxy
	return f
}

// accepted reports whether the gateway has answered all posts there should be.
func (f *kannelFront) accepted(each int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range kannelFaults() {
		if f.taken[fault.number] < each*fault.posts {
			return false
		}
	}
	return true
}

func (f *kannelFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f.mu.Lock()
	f.tries[q.Get("id")]++
	try := f.tries[q.Get("id")]
	f.mu.Unlock()
	for _, fault := range kannelFaults() {
		if try == 1 && fault.number == q.Get("to") {
			fault.first(w, r, f.gateway)
			return
		}
	}
	f.gateway.ServeHTTP(w, r)
}

// TestKannelRetries has Kannel keep what the gateway cannot take, with the
// page's settings but for the pause between its attempts.
func TestKannelRetries(t *testing.T) {
	t.Parallel()
	const each = 10
	kannelPrograms(t)
	sink, at := newKannelSink(t), porttest.Address(t)
	k := startKannel(t, at, "http-queue-delay = 10", "http-queue-delay = 1")
	var lines, want []string
	for i, fault := range kannelFaults() {
		for n := range each {
			text := fmt.Sprintf("message %d of fault %d", n, i)
			lines = append(lines, "447700900123 "+fault.number+" text "+text)
			want = append(want, text+"|"+fault.number)
		}
	}
	smsc := k.carry(lines)
	k.smsbox.says("HTTP: Retrying request") // nobody listens there yet

	g := kannelGateway(t, sink.url)
	front := newKannelFront(t, g.URL())
	server := kannelServe(t, at, front)
	relaytest.Eventually(t, "the gateway has answered every message", func() (any, bool) { return "Kannel has given up", front.accepted(each) })
	sink.receives(t, "/sms", len(want), "m", "d")
	smsc.stop()
	k.end()
	server.Close()
	relaytest.NoError(t, g.Stop())

	got := sink.seen("/sms", "m", "d")
	t.Run("each message arrives once", func(t *testing.T) { onceEach(t, got, want) })
	for _, fault := range kannelFaults() {
		t.Run(fault.name, func(t *testing.T) {
			if n := front.taken[fault.number]; n != each*fault.posts {
				t.Errorf("the gateway took %d posts, want %d", n, each*fault.posts)
			}
		})
	}
	t.Run("nobody is texted that it failed", func(t *testing.T) {
		if !smsc.log.Has(fmt.Sprintf("fakesmsc: %d messages sent and 0 received", len(lines))) {
			t.Errorf("fakesmsc got texts:\n%s", smsc.tail())
		}
	})
}

// kannelServe serves at an address.
func kannelServe(t *testing.T, addr string, h http.Handler) *httptest.Server {
	t.Helper()
	l := relaytest.Must(net.Listen("tcp", addr))(t)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}
