package httpd

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// long is a wait longer than any test.
const long = time.Hour

// waitingCount returns the number of requests that wait for a slot.
func (s *slots) waitingCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func TestSlotsAreBounded(t *testing.T) {
	s := newSlots(RequestLimit{Requests: 4, Bytes: 100}, 50, time.Millisecond)
	for _, step := range []struct {
		name string
		acct relay.AccountID
		want reason
	}{
		{"the first request of an account", 1, ""},
		{"the second request of an account", 1, ""},
		{"a request above the share of the account", 1, reasonAccount},
		{"another account", 2, ""},
		{"the second request of another account", 2, ""},
		{"a third account without a free slot", 3, reasonRequests},
	} {
		if got := s.acquire(step.acct); got != step.want {
			t.Errorf("%s: reason = %q, want %q", step.name, got, step.want)
		}
	}
	for _, acct := range []relay.AccountID{1, 1, 2, 2} {
		s.release(acct)
	}
	if got := s.acquire(3); got != "" {
		t.Errorf("reason after all slots were released = %q, want none", got)
	}
	s.release(3)
	relaytest.Equal(t, "the number of slots in use", s.used, 0)
	relaytest.Equal(t, "the number of waiting requests", s.waiting, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
	relaytest.Equal(t, "the number of turns", s.turns.Len(), 0)
}

func TestTheMemoryOfBodiesIsBounded(t *testing.T) {
	s := newSlots(RequestLimit{Requests: 1, Bytes: 100}, 60, long)
	for _, step := range []struct {
		name string
		acct relay.AccountID
		n    int64
		want reason
	}{
		{"a body", 1, 60, ""},
		{"a body above the share of the account", 1, 1, reasonAccountBytes},
		{"another account", 2, 40, ""},
		{"a body above the limit", 2, 1, reasonBytes},
	} {
		if got := s.reserve(step.acct, step.n); got != step.want {
			t.Errorf("%s: reason = %q, want %q", step.name, got, step.want)
		}
	}
	s.unreserve(1, 60)
	s.unreserve(2, 40)
	relaytest.Equal(t, "the reserved bytes", s.bytes, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
}

// Four requests of one account and one request each of two other accounts wait. Free slots go to
// the accounts in turns.
func TestAccountsGetFreeSlotsInTurns(t *testing.T) {
	s := newSlots(RequestLimit{Requests: 1, Bytes: 1}, 100, long)
	if got := s.acquire(1); got != "" {
		t.Fatalf("reason = %q, want none", got)
	}
	granted := make(chan relay.AccountID)
	var wg sync.WaitGroup
	for i, acct := range []relay.AccountID{1, 1, 1, 1, 2, 3} {
		wg.Go(func() {
			if s.acquire(acct) == "" {
				granted <- acct
			}
		})
		relaytest.Eventually(t, "the request waits", func() (any, bool) { n := s.waitingCount(); return n, n == i+1 })
	}
	owner := relay.AccountID(1)
	for _, want := range []relay.AccountID{1, 2, 3, 1, 1, 1} {
		s.release(owner)
		if owner = <-granted; owner != want {
			t.Errorf("slot went to account %d, want %d", owner, want)
		}
	}
	s.release(owner)
	wg.Wait()
}

func TestConcurrentRequestsDoNotExceedTheLimits(t *testing.T) {
	s := newSlots(RequestLimit{Requests: 8, Bytes: 1}, 50, time.Millisecond)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			acct := relay.AccountID(i % 5)
			for range 200 {
				if s.acquire(acct) != "" {
					continue
				}
				s.mu.Lock()
				if used := s.accounts[acct].used; s.used > 8 || used > 4 {
					t.Errorf("slots in use = %d, %d by one account, want at most 8 and 4", s.used, used)
				}
				s.mu.Unlock()
				s.release(acct)
			}
		})
	}
	wg.Wait()
	relaytest.Equal(t, "the number of slots in use", s.used, 0)
	relaytest.Equal(t, "the number of waiting requests", s.waiting, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
}

// busy is an app with a route for each kind of traffic. Its requests wait until releaseAll.
type busy struct {
	addr     string
	listener *Listener
	limits   *Limits
	started  chan struct{}
	end      chan struct{}
	log      *relaytest.Buffer
}

func newBusy(t *testing.T, o LimitOptions) *busy {
	t.Helper()
	return newBusyOverTLS(t, o, nil)
}

// newBusyOverTLS returns a busy app with TLS, unless secure is nil.
func newBusyOverTLS(t *testing.T, o LimitOptions, secure *tls.Config) *busy {
	t.Helper()
	b := &busy{started: make(chan struct{}, 1000), end: make(chan struct{}), log: &relaytest.Buffer{}}
	o.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	b.limits = NewLimits(o)
	app := New(Options{Logger: discardLogger(), Limits: b.limits})
	tokens := newStore()
	tokens.tokens["other"] = account.Token{Account: 9, Scopes: []account.Scope{account.Webhook}}
	auth := NewAuth(AuthDeps{Tokens: tokens, AdminToken: "the-admin-token-0", Now: time.Now})
	work := func(c *fiber.Ctx) error {
		if _, err := Body(c, 1<<20); err != nil {
			return err
		}
		b.started <- struct{}{}
		<-b.end
		return nil
	}
	app.Post("/hook", auth.Require(account.Webhook, WebhookStyle()), work)
	app.Post("/api", auth.Require(account.IoT, APIStyle(BearerOrBare)), work)
	app.Post("/waits", auth.Require(account.Webhook, WebhookStyle()), func(c *fiber.Ctx) error {
		Waiting(c)
		b.started <- struct{}{}
		<-b.end
		return nil
	})
	app.Get("/admin", requireAdmin(auth), func(c *fiber.Ctx) error { return c.SendString("ok") })
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.SendString("ok") })
	b.addr, b.listener = serveOn(t, app, secure, b.limits)
	t.Cleanup(b.releaseAll)
	return b
}

// openCount returns the number of open connections.
func (b *busy) openCount() int {
	b.listener.mu.Lock()
	defer b.listener.mu.Unlock()
	return len(b.listener.openConns)
}

// releaseAll ends all requests.
func (b *busy) releaseAll() {
	select {
	case <-b.end:
	default:
		close(b.end)
	}
}

// post sends a request and returns its connection.
func (b *busy) post(t *testing.T, path, token string) net.Conn {
	t.Helper()
	conn := dial(t, b.addr)
	write(t, conn, "POST "+path+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 2\r\n\r\n{}")
	return conn
}

// answer reads the answer on a connection.
func answer(t *testing.T, conn net.Conn) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	relaytest.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err)
	return resp, string(body)
}

// wantRefused checks that the answer on a connection is 503.
func (b *busy) wantRefused(t *testing.T, name string, conn net.Conn) {
	t.Helper()
	resp, body := answer(t, conn)
	relaytest.Equal(t, name+": the status", resp.StatusCode, 503)
	relaytest.Equal(t, name+": Retry-After", resp.Header.Get("Retry-After"), "5")
	relaytest.Equal(t, name+": the answer", body, `{"message":"Service temporarily unavailable. Please try again later."}`)
}

// wantOK checks that the answer on a connection is 200.
func (b *busy) wantOK(t *testing.T, name string, conn net.Conn) {
	t.Helper()
	if resp, body := answer(t, conn); resp.StatusCode != 200 {
		t.Errorf("%s: answer = %d %s, want 200", name, resp.StatusCode, body)
	}
}

func (b *busy) inFlight(k Kind) int { return b.limits.Stats().InFlight[k.String()] }

func TestRequestsAboveTheBoundAreRefused(t *testing.T) {
	b := newBusy(t, LimitOptions{
		Webhooks: RequestLimit{Requests: 4}, API: RequestLimit{Requests: 2}, Wait: 20 * time.Millisecond,
	})
	var conns []net.Conn
	for range 2 {
		conns = append(conns, b.post(t, "/hook", "hook"))
		<-b.started
	}
	b.wantRefused(t, "a request above the share of its account", b.post(t, "/hook", "hook"))
	for range 2 {
		conns = append(conns, b.post(t, "/hook", "other"))
		<-b.started
	}
	conns = append(conns, b.post(t, "/api", "iot"))
	<-b.started
	b.wantRefused(t, "an API request above the bound", b.post(t, "/api", "iot"))
	for path, token := range map[string]string{"/admin": "the-admin-token-0", "/healthz": ""} {
		conn := dial(t, b.addr)
		write(t, conn, "GET "+path+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		b.wantOK(t, path+" while all slots are in use", conn)
	}
	if n := b.inFlight(Webhooks); n != 4 {
		t.Errorf("webhooks in flight = %d, want 4", n)
	}
	b.releaseAll()
	for _, conn := range conns {
		b.wantOK(t, "a request with a slot", conn)
	}
	relaytest.Eventually(t, "no request is in flight", func() (any, bool) {
		n := b.inFlight(Webhooks) + b.inFlight(API)
		return n, n == 0
	})
	b.wantOK(t, "a request after the release", b.post(t, "/hook", "hook"))
	want := map[[2]string]uint64{{"webhooks", "account"}: 1, {"webhooks", "requests"}: 0, {"api", "account"}: 1}
	for labels, n := range want {
		if got := b.limits.Stats().Refused[labels]; got != n {
			t.Errorf("refusals of %v = %d, want %d", labels, got, n)
		}
	}
	if lines := strings.Count(b.log.String(), "requests refused"); lines != 1 {
		t.Errorf("log lines about two refusals = %d, want 1:\n%s", lines, b.log)
	}
}

func TestARequestWaitsForASlot(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: RequestLimit{Requests: 2}, Wait: long})
	firstConn := b.post(t, "/hook", "hook")
	<-b.started
	secondConn := b.post(t, "/hook", "hook")
	relaytest.Eventually(t, "the second request waits", func() (any, bool) { n := b.limits.Stats().Waiting["webhooks"]; return n, n == 1 })
	b.releaseAll()
	b.wantOK(t, "the first request", firstConn)
	b.wantOK(t, "the second request", secondConn)
}

// Requests that wait for a result or for their body have no slot.
func TestWaitingRequestsUseNoSlot(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: RequestLimit{Requests: 2}, Wait: long})
	var conns []net.Conn
	for range 5 {
		conns = append(conns, b.post(t, "/waits", "hook"))
		<-b.started
	}
	for range 5 {
		conn := dial(t, b.addr)
		write(t, conn, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 1000\r\n\r\n{")
		conns = append(conns, conn)
	}
	relaytest.Eventually(t, "five bodies have begun to arrive", func() (any, bool) { n := b.limits.Stats().Bytes["webhooks"]; return n, n >= 5*1000 })
	relaytest.Eventually(t, "no slot is used", func() (any, bool) { n := b.inFlight(Webhooks); return n, n == 0 })
	conn := b.post(t, "/hook", "hook")
	<-b.started
	b.releaseAll()
	b.wantOK(t, "a request with a slot", conn)
	for _, conn := range conns[5:] {
		write(t, conn, strings.Repeat("x", 999))
	}
	for _, conn := range conns {
		b.wantOK(t, "a request that waited", conn)
	}
}

func TestBodiesOfAnAccountHaveAShareOfTheMemory(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: RequestLimit{Requests: 10, Bytes: 80_000}, Wait: long})
	post := func(token string) net.Conn {
		conn := dial(t, b.addr)
		write(t, conn, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 30000\r\n\r\n"+strings.Repeat("x", 30_000))
		return conn
	}
	conns := []net.Conn{post("hook")}
	<-b.started
	b.wantRefused(t, "a body above the share of its account", post("hook"))
	conns = append(conns, post("other"))
	<-b.started
	b.releaseAll()
	for _, conn := range conns {
		b.wantOK(t, "a body within the share", conn)
	}
}

func TestErrOverloadedIsAFiberErrorOfKindUnavailable(t *testing.T) {
	e, ok := errors.AsType[*fiber.Error](ErrOverloaded)
	if !ok {
		t.Fatalf("type of %v is not *fiber.Error", ErrOverloaded)
	}
	relaytest.Equal(t, "the status", e.Code, 503)
	relaytest.Equal(t, "the kind", relay.KindOf(ErrOverloaded), relay.KindUnavailable)
}

// At the limit, the connections that have waited longest for their client are closed: connections
// with an incomplete head or body, and idle ones.
func TestAConnectionThatWaitsMakesRoom(t *testing.T) {
	b := newBusy(t, LimitOptions{Connections: 3, Wait: long})
	working := b.post(t, "/hook", "hook")
	<-b.started
	var slow []net.Conn
	for i, prefix := range []string{
		"POST /hook HTT", "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 5\r\n\r\n{",
	} {
		conn := dial(t, b.addr)
		write(t, conn, prefix)
		slow = append(slow, conn)
		relaytest.Eventually(t, "the connection is open", func() (any, bool) { n := b.openCount(); return n, n == i+2 })
	}
	for i := range 4 {
		conn := dial(t, b.addr)
		write(t, conn, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
		b.wantOK(t, fmt.Sprint("health check ", i), conn)
	}
	for _, conn := range slow {
		if data, _ := io.ReadAll(conn); strings.HasPrefix(string(data), "HTTP/1.1 2") {
			t.Errorf("answer on a slow connection = %q, want none", data)
		}
	}
	b.releaseAll()
	b.wantOK(t, "the connection in use", working)
	if n := b.limits.Stats().Refused[[2]string{"connections", "evicted"}]; n < 3 {
		t.Errorf("evicted connections = %d, want at least 3", n)
	}
}

func TestConnectionsInUseAreNotEvicted(t *testing.T) {
	b := newBusy(t, LimitOptions{Connections: 2, Wait: long})
	conns := []net.Conn{b.post(t, "/hook", "hook"), b.post(t, "/hook", "other")}
	<-b.started
	<-b.started
	wantClosed(t, dial(t, b.addr))
	b.releaseAll()
	for _, conn := range conns {
		b.wantOK(t, "a connection in use", conn)
	}
}

// wantClosed waits until the server has closed a connection without an answer.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	relaytest.NoError(t, conn.SetReadDeadline(time.Now().Add(relaytest.Patience)))
	data, err := io.ReadAll(conn)
	if len(data) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("data on a connection above the limit = %q, %v, want none", data, err)
	}
}

// A client that does not send its part of the TLS handshake must not block the listener.
func TestASilentClientDoesNotStopTheListenerUnderTLS(t *testing.T) {
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tlsServer.Close)
	b := newBusyOverTLS(t, LimitOptions{Connections: 1, Wait: long}, &tls.Config{Certificates: tlsServer.TLS.Certificates})
	clientConfig := tlsServer.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	clientConfig.ServerName = "example.com"
	open := func() net.Conn { return tls.Client(dial(t, b.addr), clientConfig) }

	working := open()
	write(t, working, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	<-b.started
	wantClosed(t, dial(t, b.addr)) // all connections are in use

	b.releaseAll()
	b.wantOK(t, "the connection in use", working)
	silentConn := dial(t, b.addr)
	relaytest.Eventually(t, "the silent connection is open", func() (any, bool) { n := b.openCount(); return n, n == 1 })
	nextConn := open()
	write(t, nextConn, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	b.wantOK(t, "a client after a silent one", nextConn)
	wantClosed(t, silentConn)
	relaytest.Equal(t, "the number of refused connections", b.limits.Stats().Refused[[2]string{"connections", "full"}], 1)
}
