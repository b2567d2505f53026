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

// kannelFault is a fault at the first post of a message by Kannel.
type kannelFault struct {
	name        string
	number      string // recipient of the messages that have the fault
	posts       int    // number of posts of a message that reach the gateway
	handleFirst func(w http.ResponseWriter, r *http.Request, gateway http.Handler)
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
		{"the connection is closed before the post is read", "447800030000", 1, func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		}},
		{"the answer is lost", "447800040000", 2, func(_ http.ResponseWriter, r *http.Request, gateway http.Handler) {
			gateway.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}},
	}
}

// kannelFront is a proxy in front of the gateway that applies a fault to the first post of a message.
type kannelFront struct {
	mu       sync.Mutex
	attempts map[string]int // by Kannel's id
	answered map[string]int // number of posts that the gateway has answered with 200, by recipient
	gateway  http.Handler
}

func newKannelFront(t *testing.T, gateway string) *kannelFront {
	t.Helper()
	f := &kannelFront{attempts: make(map[string]int), answered: make(map[string]int)}
	proxy := httputil.NewSingleHostReverseProxy(relaytest.Must(url.Parse(gateway))(t))
	proxy.ModifyResponse = func(r *http.Response) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.StatusCode == http.StatusOK {
			f.answered[r.Request.URL.Query().Get("to")]++
		}
		return nil
	}
	f.gateway = proxy
	return f
}

// accepted reports whether the gateway has answered all expected posts. perFault is the number
// of messages for each fault.
func (f *kannelFront) accepted(perFault int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range kannelFaults() {
		if f.answered[fault.number] < perFault*fault.posts {
			return false
		}
	}
	return true
}

func (f *kannelFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f.mu.Lock()
	f.attempts[q.Get("id")]++
	attempt := f.attempts[q.Get("id")]
	f.mu.Unlock()
	for _, fault := range kannelFaults() {
		if attempt == 1 && fault.number == q.Get("to") {
			fault.handleFirst(w, r, f.gateway)
			return
		}
	}
	f.gateway.ServeHTTP(w, r)
}

// TestKannelRetries checks that Kannel repeats posts that the gateway does not accept. Kannel
// has the settings of docs/kannel.md, except for a shorter pause between attempts.
func TestKannelRetries(t *testing.T) {
	t.Parallel()
	const perFault = 10
	kannelPrograms(t)
	sink, addr := newKannelSink(t), porttest.Address(t)
	k := startKannel(t, addr, "http-queue-delay = 10", "http-queue-delay = 1")
	var lines, want []string
	for i, fault := range kannelFaults() {
		for n := range perFault {
			text := fmt.Sprintf("message %d of fault %d", n, i)
			lines = append(lines, "447700900123 "+fault.number+" text "+text)
			want = append(want, text+"|"+fault.number)
		}
	}
	smsc := k.carry(lines)
	k.smsbox.awaitOutput("HTTP: Retrying request") // no server listens on addr yet

	g := kannelGateway(t, sink.url)
	front := newKannelFront(t, g.URL())
	server := serveAt(t, addr, front)
	relaytest.Eventually(t, "the gateway has answered every message", func() (any, bool) {
		return "missing answers: Kannel may have stopped its attempts", front.accepted(perFault)
	})
	sink.awaitRequests(t, "/sms", len(want), "m", "d")
	smsc.stop()
	k.end()
	server.Close()
	relaytest.NoError(t, g.Stop())

	got := sink.countBy("/sms", "m", "d")
	t.Run("each message arrives once", func(t *testing.T) { checkEachOnce(t, got, want) })
	for _, fault := range kannelFaults() {
		t.Run(fault.name, func(t *testing.T) {
			if n := front.answered[fault.number]; n != perFault*fault.posts {
				t.Errorf("accepted posts = %d, want %d", n, perFault*fault.posts)
			}
		})
	}
	t.Run("Kannel sends no failure message to a sender", func(t *testing.T) {
		if !smsc.log.Has(fmt.Sprintf("fakesmsc: %d messages sent and 0 received", len(lines))) {
			t.Errorf("fakesmsc received messages:\n%s", smsc.tail())
		}
	})
}

// serveAt starts a server on an address, and closes the server when the test ends.
func serveAt(t *testing.T, addr string, h http.Handler) *httptest.Server {
	t.Helper()
	l := relaytest.Must(net.Listen("tcp", addr))(t)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}
