package httpd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// sendTimeLeft answers with the time until the deadline of the request, rounded to 30 seconds.
func sendTimeLeft(c *fiber.Ctx) error {
	due, ok := c.UserContext().Deadline()
	if !ok {
		return c.SendString("never")
	}
	return c.SendString(time.Until(due).Round(time.Minute / 2).String())
}

func TestEveryRequestHasADeadline(t *testing.T) {
	t.Parallel()
	app := New(Options{Logger: discardLogger()})
	auth := NewAuth(AuthDeps{Tokens: newStore(), AdminToken: "admin-token-0123456", Now: time.Now})
	iot := auth.Require(account.IoT, APIStyle(Bearer))
	app.Get("/open", sendTimeLeft)
	app.Post("/webhook", auth.Require(account.Webhook, WebhookStyle()), sendTimeLeft)
	app.Get("/api", iot, sendTimeLeft)
	app.Post("/api", iot, func(c *fiber.Ctx) error {
		ctx := c.UserContext() // some handlers get the context before the body
		if _, err := Body(c, 100); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return sendTimeLeft(c)
	})
	app.Get("/search", iot, Search, sendTimeLeft)
	app.Get("/export", iot, Export, sendTimeLeft)
	app.Get("/admin", requireAdmin(auth), sendTimeLeft)
	url := "http://" + serve(t, app)
	for _, tc := range []struct{ name, method, path, token, want string }{
		{"a request without credentials", "GET", "/open", "", "30s"},
		{"a webhook", "POST", "/webhook", "hook", "30s"},
		{"a REST request", "GET", "/api", "iot", "1m0s"},
		{"a REST request with a chunked body", "POST", "/api", "iot", "1m0s"},
		{"a search", "GET", "/search", "iot", "30s"},
		{"an export", "GET", "/export", "iot", "10m0s"},
		{"an admin request", "GET", "/admin", "admin-token-0123456", "1h0m0s"},
	} {
		var body io.Reader
		if tc.method == "POST" {
			body = io.MultiReader(strings.NewReader("{"), strings.NewReader("}")) // chunked
		}
		req := relaytest.Must(http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, body))(t)
		req.Header.Set("Authorization", "Bearer "+tc.token)
		resp := relaytest.Must(http.DefaultClient.Do(req))(t)
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		relaytest.Equal(t, tc.name+": the time until the deadline", string(got), tc.want)
	}
}

func TestARequestBeyondItsDeadlineIsAnsweredWith503(t *testing.T) {
	t.Parallel()
	app := New(Options{Logger: discardLogger()})
	app.Get("/", func(c *fiber.Ctx) error {
		stateOf(c).setDeadline(time.Nanosecond)
		<-c.UserContext().Done()
		return c.UserContext().Err()
	})
	resp := relaytest.Must(app.Test(httptest.NewRequest("GET", "/", nil), -1))(t)
	relaytest.Equal(t, "the status", resp.StatusCode, http.StatusServiceUnavailable)
	relaytest.Equal(t, "Retry-After", resp.Header.Get("Retry-After"), retryAfter)
}

// serveSearch serves an app with a search that streams its answer, and returns the app's limits.
func serveSearch(t *testing.T, write func(w *bufio.Writer) error) (addr string, limits *Limits) {
	t.Helper()
	limits = NewLimits(LimitOptions{Searches: 2, Logger: discardLogger()})
	limits.kinds[Searches].wait = time.Millisecond
	app := New(Options{Logger: discardLogger(), Limits: limits})
	auth := NewAuth(AuthDeps{Tokens: newStore(), Now: time.Now})
	app.Get("/search", auth.Require(account.IoT, APIStyle(Bearer)), Search, func(c *fiber.Ctx) error {
		Write(c, write)
		return nil
	})
	return serve(t, app), limits
}

const searchRequest = "GET /search HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer iot\r\n\r\n"

// runningSearches returns the number of running searches.
func runningSearches(l *Limits) int { return l.Stats().InFlight["searches"] }

func TestASearchKeepsItsSlotUntilItsAnswerIsWritten(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	addr, limits := serveSearch(t, func(w *bufio.Writer) error {
		<-end
		_, err := w.WriteString("the end")
		return err
	})
	conn := dial(t, addr)
	write(t, conn, searchRequest)
	relaytest.Eventually(t, "the search runs", func() (any, bool) { n := runningSearches(limits); return n, n == 1 })
	req := relaytest.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/search", nil))(t)
	req.Header.Set("Authorization", "Bearer iot")
	resp := relaytest.Must(http.DefaultClient.Do(req))(t)
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "Too many searches") {
		t.Errorf("answer to a search above the account's share = %d %s, want 503 with Retry-After", resp.StatusCode, body)
	}
	relaytest.Equal(t, "the number of refused searches", limits.Stats().Refused[[2]string{"searches", string(reasonAccount)}], 1)
	close(end)
	r := bufio.NewReader(conn)
	answer := relaytest.Must(http.ReadResponse(r, nil))(t)
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if string(text) != "the end" || err != nil {
		t.Errorf("answer = %q, %v, want the end", text, err)
	}
	relaytest.Eventually(t, "no search runs", func() (any, bool) { n := runningSearches(limits); return n, n == 0 })
}

func TestASearchEndsWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	addr, limits := serveSearch(t, func(w *bufio.Writer) (err error) {
		for piece := bytes.Repeat([]byte("x"), 1<<20); err == nil; {
			_, err = w.Write(piece)
		}
		ended <- err
		return err
	})
	conn := dial(t, addr)
	write(t, conn, searchRequest)
	_, err := io.ReadFull(conn, make([]byte, 100))
	relaytest.NoError(t, err)
	_ = conn.Close()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error of the search = %v, want io.ErrClosedPipe", err)
	}
	relaytest.Eventually(t, "no search runs", func() (any, bool) { n := runningSearches(limits); return n, n == 0 })
}

// An interrupted answer must not look complete.
func TestAFailedAnswerIsTruncated(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w *bufio.Writer) error{
		"an error": func(w *bufio.Writer) error {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2*minBuffer))
			return errors.New("write failed")
		},
		"a panic": func(w *bufio.Writer) error {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2*minBuffer))
			panic("write failed")
		},
	} {
		addr, _ := serveSearch(t, write)
		req := relaytest.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/search", nil))(t)
		req.Header.Set("Authorization", "Bearer iot")
		resp := relaytest.Must(http.DefaultClient.Do(req))(t)
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: no error of the client", name)
		}
		_ = resp.Body.Close()
	}
}
