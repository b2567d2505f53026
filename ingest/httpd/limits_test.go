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

// long is a wait that no test sees the end of.
const long = time.Hour

// waits counts the requests that wait for a slot.
func (s *slots) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func TestSlotsAreBounded(t *testing.T) {
	s := newSlots(Bound{Requests: 4, Bytes: 100}, 50, time.Millisecond)
	for _, step := range []struct {
		name string
		acct relay.AccountID
		want reason
	}{
		{"the first of an account", 1, ""},
		{"the second", 1, ""},
		{"more than the share", 1, byShare},
		{"another account", 2, ""},
		{"its second", 2, ""},
		{"a third account when all is taken", 3, byRequests},
	} {
		if why := s.acquire(step.acct); why != step.want {
			t.Errorf("%s: %q, want %q", step.name, why, step.want)
		}
	}
	for _, acct := range []relay.AccountID{1, 1, 2, 2} {
		s.release(acct)
	}
	if why := s.acquire(3); why != "" {
		t.Errorf("after all were released: %q", why)
	}
	s.release(3)
	relaytest.Equal(t, "the slots in use", s.used, 0)
	relaytest.Equal(t, "the requests that wait", s.waiting, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
	relaytest.Equal(t, "the number of turns", s.turns.Len(), 0)
}

func TestMemoryOfBodiesIsBounded(t *testing.T) {
	s := newSlots(Bound{Requests: 1, Bytes: 100}, 60, long)
	for _, step := range []struct {
		name string
		acct relay.AccountID
		n    int64
		want reason
	}{
		{"a body", 1, 60, ""},
		{"more than the share", 1, 1, byBytesOfShare},
		{"another account", 2, 40, ""},
		{"more than there is", 2, 1, byBytes},
	} {
		if why := s.reserve(step.acct, step.n); why != step.want {
			t.Errorf("%s: %q, want %q", step.name, why, step.want)
		}
	}
	s.unreserve(1, 60)
	s.unreserve(2, 40)
	relaytest.Equal(t, "the bytes in use", s.bytes, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
}

// A flood of one account and single requests of two others wait: the slots that
// become free go to all three in turns, and of the flood in its order.
func TestSlotsGoToAccountsInTurns(t *testing.T) {
	s := newSlots(Bound{Requests: 1, Bytes: 1}, 100, long)
	if why := s.acquire(1); why != "" {
		t.Fatal(why)
	}
	granted := make(chan relay.AccountID)
	var wg sync.WaitGroup
	for i, acct := range []relay.AccountID{1, 1, 1, 1, 2, 3} {
		wg.Go(func() {
			if why := s.acquire(acct); why == "" {
				granted <- acct
			}
		})
		relaytest.Eventually(t, "the request waits", func() (any, bool) { n := s.waits(); return n, n == i+1 })
	}
	last := relay.AccountID(1)
	for _, want := range []relay.AccountID{1, 2, 3, 1, 1, 1} {
		s.release(last)
		if last = <-granted; last != want {
			t.Errorf("a slot went to account %d, want %d", last, want)
		}
	}
	s.release(last)
	wg.Wait()
}

// What many goroutines take at once is never more than there is, and all comes back.
func TestSlotsUnderConcurrency(t *testing.T) {
	s := newSlots(Bound{Requests: 8, Bytes: 1}, 50, time.Millisecond)
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
					t.Errorf("%d slots are used, %d by one account", s.used, used)
				}
				s.mu.Unlock()
				s.release(acct)
			}
		})
	}
	wg.Wait()
	relaytest.Equal(t, "the slots in use", s.used, 0)
	relaytest.Equal(t, "the requests that wait", s.waiting, 0)
	relaytest.Equal(t, "the number of accounts", len(s.accounts), 0)
}

// busy is an app of a path for each kind, whose requests end when they are let go.
type busy struct {
	addr     string
	listener *Listener
	limits   *Limits
	came     chan struct{}
	end      chan struct{}
	log      *relaytest.Buffer
}

func newBusy(t *testing.T, o LimitOptions) *busy {
	t.Helper()
	return newBusyOverTLS(t, o, nil)
}

// newBusyOverTLS returns a busy app; nil means without TLS.
func newBusyOverTLS(t *testing.T, o LimitOptions, secure *tls.Config) *busy {
	t.Helper()
	b := &busy{came: make(chan struct{}, 1000), end: make(chan struct{}), log: &relaytest.Buffer{}}
	o.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	b.limits = NewLimits(o)
	app := New(Options{Logger: quiet(), Limits: b.limits})
	tokens := newStore()
	tokens.tokens["other"] = account.Token{Account: 9, Scopes: []account.Scope{account.Webhook}}
	auth := NewAuth(AuthDeps{Tokens: tokens, AdminToken: "the-admin-token-0", Now: time.Now})
	work := func(c *fiber.Ctx) error {
		if _, err := Body(c, 1<<20); err != nil {
			return err
		}
		b.came <- struct{}{}
		<-b.end
		return nil
	}
	app.Post("/hook", auth.Require(account.Webhook, WebhookStyle()), work)
	app.Post("/api", auth.Require(account.IoT, APIStyle(BearerOrBare)), work)
	app.Post("/waits", auth.Require(account.Webhook, WebhookStyle()), func(c *fiber.Ctx) error {
		Waiting(c)
		b.came <- struct{}{}
		<-b.end
		return nil
	})
	app.Get("/admin", requireAdmin(auth), func(c *fiber.Ctx) error { return c.SendString("fine") })
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.SendString("fine") })
	b.addr, b.listener = serveOn(t, app, secure, b.limits)
	t.Cleanup(b.letGo)
	return b
}

// open counts the open connections.
func (b *busy) open() int {
	b.listener.mu.Lock()
	defer b.listener.mu.Unlock()
	return len(b.listener.open)
}

func (b *busy) letGo() {
	select {
	case <-b.end:
	default:
		close(b.end)
	}
}

// post sends a request and returns its connection, on which the answer comes.
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

func (b *busy) isRefused(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	resp, body := answer(t, conn)
	relaytest.Equal(t, what+": the status", resp.StatusCode, 503)
	relaytest.Equal(t, what+": Retry-After", resp.Header.Get("Retry-After"), "5")
	relaytest.Equal(t, what+": the answer", body, `{"message":"Service temporarily unavailable. Please try again later."}`)
}

func (b *busy) isAnswered(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	if resp, body := answer(t, conn); resp.StatusCode != 200 {
		t.Errorf("%s: %d %s", what, resp.StatusCode, body)
	}
}

func (b *busy) inFlight(k Kind) int { return b.limits.Stats().InFlight[k.String()] }

func TestRequestsBeyondTheBoundAreRefused(t *testing.T) {
	b := newBusy(t, LimitOptions{
		Webhooks: Bound{Requests: 4}, API: Bound{Requests: 2}, Wait: 20 * time.Millisecond,
	})
	var held []net.Conn
	for range 2 {
		held = append(held, b.post(t, "/hook", "hook"))
		<-b.came
	}
	b.isRefused(t, "an account's third of four", b.post(t, "/hook", "hook"))
	for range 2 {
		held = append(held, b.post(t, "/hook", "other"))
		<-b.came
	}
	held = append(held, b.post(t, "/api", "iot"))
	<-b.came
	b.isRefused(t, "the API beyond its own bound", b.post(t, "/api", "iot"))
	for path, token := range map[string]string{"/admin": "the-admin-token-0", "/healthz": ""} {
		conn := dial(t, b.addr)
		write(t, conn, "GET "+path+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		b.isAnswered(t, path+" while all slots are taken", conn)
	}
	if n := b.inFlight(Webhooks); n != 4 {
		t.Errorf("%d webhooks are in flight, want 4", n)
	}
	b.letGo()
	for _, conn := range held {
		b.isAnswered(t, "a request that had a slot", conn)
	}
	relaytest.Eventually(t, "nothing in flight", func() (any, bool) {
		n := b.inFlight(Webhooks) + b.inFlight(API)
		return n, n == 0
	})
	b.isAnswered(t, "a request afterwards", b.post(t, "/hook", "hook"))
	want := map[[2]string]uint64{{"webhooks", "account"}: 1, {"webhooks", "requests"}: 0, {"api", "account"}: 1}
	for labels, n := range want {
		if got := b.limits.Stats().Refused[labels]; got != n {
			t.Errorf("%d refusals of %v, want %d", got, labels, n)
		}
	}
	if lines := strings.Count(b.log.String(), "requests refused"); lines != 1 {
		t.Errorf("%d lines of log for two refusals at once, want 1:\n%s", lines, b.log)
	}
}

func TestARequestWaitsForASlot(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: Bound{Requests: 2}, Wait: long})
	first := b.post(t, "/hook", "hook")
	<-b.came
	second := b.post(t, "/hook", "hook")
	relaytest.Eventually(t, "the second waits", func() (any, bool) { n := b.limits.Stats().Waiting["webhooks"]; return n, n == 1 })
	b.letGo()
	b.isAnswered(t, "the first", first)
	b.isAnswered(t, "the second", second)
}

// Requests that only wait, for a result or for their own body, leave the slots to
// others.
func TestWaitingRequestsUseNoSlot(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: Bound{Requests: 2}, Wait: long})
	var held []net.Conn
	for range 5 {
		held = append(held, b.post(t, "/waits", "hook"))
		<-b.came
	}
	for range 5 {
		conn := dial(t, b.addr)
		write(t, conn, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 1000\r\n\r\n{")
		held = append(held, conn)
	}
	relaytest.Eventually(t, "five bodies have begun", func() (any, bool) { n := b.limits.Stats().Bytes["webhooks"]; return n, n >= 5*1000 })
	relaytest.Eventually(t, "no slot is used", func() (any, bool) { n := b.inFlight(Webhooks); return n, n == 0 })
	conn := b.post(t, "/hook", "hook")
	<-b.came
	b.letGo()
	b.isAnswered(t, "a request beside them", conn)
	for _, conn := range held[5:] {
		write(t, conn, strings.Repeat("x", 999))
	}
	for _, conn := range held {
		b.isAnswered(t, "one that waited", conn)
	}
}

func TestBodiesOfAnAccountShareItsMemory(t *testing.T) {
	b := newBusy(t, LimitOptions{Webhooks: Bound{Requests: 10, Bytes: 80_000}, Wait: long})
	post := func(token string) net.Conn {
		conn := dial(t, b.addr)
		write(t, conn, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 30000\r\n\r\n"+strings.Repeat("x", 30_000))
		return conn
	}
	held := []net.Conn{post("hook")}
	<-b.came
	b.isRefused(t, "more than the share", post("hook"))
	held = append(held, post("other"))
	<-b.came
	b.letGo()
	for _, conn := range held {
		b.isAnswered(t, "a body with memory", conn)
	}
}

func TestErrOverloadedIsAnErrorOfBothKinds(t *testing.T) {
	e, ok := errors.AsType[*fiber.Error](ErrOverloaded)
	if !ok {
		t.Fatalf("%v is no error of Fiber", ErrOverloaded)
	}
	relaytest.Equal(t, "the status", e.Code, 503)
	relaytest.Equal(t, "the kind", relay.KindOf(ErrOverloaded), relay.KindUnavailable)
}

// At the limit the connections that wait longest for their client make room: those
// with heads or bodies that come slowly, and idle ones.
func TestAConnectionThatWaitsMakesRoom(t *testing.T) {
	b := newBusy(t, LimitOptions{Connections: 3, Wait: long})
	working := b.post(t, "/hook", "hook")
	<-b.came
	var slow []net.Conn
	for i, begin := range []string{
		"POST /hook HTT", "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 5\r\n\r\n{",
	} {
		conn := dial(t, b.addr)
		write(t, conn, begin)
		slow = append(slow, conn)
		relaytest.Eventually(t, "the connection is open", func() (any, bool) { n := b.open(); return n, n == i+2 })
	}
	for i := range 4 {
		conn := dial(t, b.addr)
		write(t, conn, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
		b.isAnswered(t, fmt.Sprint("health check ", i), conn)
	}
	for _, conn := range slow {
		if rest, _ := io.ReadAll(conn); strings.HasPrefix(string(rest), "HTTP/1.1 2") {
			t.Errorf("a slow connection was answered %q", rest)
		}
	}
	b.letGo()
	b.isAnswered(t, "the connection in use", working)
	if n := b.limits.Stats().Refused[[2]string{"connections", "evicted"}]; n < 3 {
		t.Errorf("%d connections made room", n)
	}
}

func TestNoRoomBesideConnectionsInUse(t *testing.T) {
	b := newBusy(t, LimitOptions{Connections: 2, Wait: long})
	held := []net.Conn{b.post(t, "/hook", "hook"), b.post(t, "/hook", "other")}
	<-b.came
	<-b.came
	isClosed(t, dial(t, b.addr))
	b.letGo()
	for _, conn := range held {
		b.isAnswered(t, "a connection in use", conn)
	}
}

// isClosed waits until the server has closed a connection without an answer.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	relaytest.NoError(t, conn.SetReadDeadline(time.Now().Add(relaytest.Patience)))
	data, err := io.ReadAll(conn)
	if len(data) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the limit got %q, %v", data, err)
	}
}

// A client that sends nothing, not even its part of the TLS handshake, must not keep the
// listener from others.
func TestASilentClientDoesNotStopTheListenerUnderTLS(t *testing.T) {
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(certified.Close)
	b := newBusyOverTLS(t, LimitOptions{Connections: 1, Wait: long}, &tls.Config{Certificates: certified.TLS.Certificates})
	trust := certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.ServerName = "example.com"
	open := func() net.Conn { return tls.Client(dial(t, b.addr), trust) }

	working := open()
	write(t, working, "POST /hook HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer hook\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	<-b.came
	isClosed(t, dial(t, b.addr)) // all connections are in use

	b.letGo()
	b.isAnswered(t, "the connection in use", working)
	silent := dial(t, b.addr)
	relaytest.Eventually(t, "the silent connection is open", func() (any, bool) { n := b.open(); return n, n == 1 })
	late := open()
	write(t, late, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	b.isAnswered(t, "a client after a silent one", late)
	isClosed(t, silent)
	relaytest.Equal(t, "the connections without room", b.limits.Stats().Refused[[2]string{"connections", "full"}], 1)
}
