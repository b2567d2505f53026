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

// left answers with the time until the deadline of the request, to half a minute.
func left(c *fiber.Ctx) error {
	due, ok := c.UserContext().Deadline()
	if !ok {
		return c.SendString("never")
	}
	return c.SendString(time.Until(due).Round(time.Minute / 2).String())
}

func TestEveryRequestHasADeadline(t *testing.T) {
	t.Parallel()
	app := New(Options{Logger: quiet()})
	auth := NewAuth(AuthDeps{Tokens: newStore(), AdminToken: "admin-token-0123456", Now: time.Now})
	iot := auth.Require(account.IoT, APIStyle(Bearer))
	app.Get("/open", left)
	app.Post("/webhook", auth.Require(account.Webhook, WebhookStyle()), left)
	app.Get("/api", iot, left)
	app.Post("/api", iot, func(c *fiber.Ctx) error {
		ctx := c.UserContext() // some handlers take it before the body
		if _, err := Body(c, 100); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return left(c)
	})
	app.Get("/search", iot, Search, left)
	app.Get("/export", iot, Export, left)
	app.Get("/admin", requireAdmin(auth), left)
	url := "http://" + serve(t, app)
	for _, tc := range []struct{ name, method, path, token, want string }{
		{"one that needs no credentials", "GET", "/open", "", "30s"},
		{"a webhook", "POST", "/webhook", "hook", "30s"},
		{"a request of REST", "GET", "/api", "iot", "1m0s"},
		{"one whose body arrives late", "POST", "/api", "iot", "1m0s"},
		{"a search", "GET", "/search", "iot", "30s"},
		{"an export", "GET", "/export", "iot", "10m0s"},
		{"the administrator's", "GET", "/admin", "admin-token-0123456", "1h0m0s"},
	} {
		var body io.Reader
		if tc.method == "POST" {
			body = io.MultiReader(strings.NewReader("{"), strings.NewReader("}")) // in chunks
		}
		req := relaytest.Must(http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, body))(t)
		req.Header.Set("Authorization", "Bearer "+tc.token)
		resp := relaytest.Must(http.DefaultClient.Do(req))(t)
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		relaytest.Equal(t, tc.name+": the time left", string(got), tc.want)
	}
}

// A request that takes longer than its deadline is answered with 503.
func TestARequestBeyondItsDeadlineIsUnavailable(t *testing.T) {
	t.Parallel()
	app := New(Options{Logger: quiet()})
	app.Get("/", func(c *fiber.Ctx) error {
		stateOf(c).setDeadline(time.Nanosecond)
		<-c.UserContext().Done()
		return c.UserContext().Err()
	})
	resp := relaytest.Must(app.Test(httptest.NewRequest("GET", "/", nil), -1))(t)
	relaytest.Equal(t, "the status", resp.StatusCode, http.StatusServiceUnavailable)
	relaytest.Equal(t, "Retry-After", resp.Header.Get("Retry-After"), retryAfter)
}

// searching is an app whose search streams an answer, and the limits of the app.
func searching(t *testing.T, write func(w *bufio.Writer) error) (addr string, limits *Limits) {
	t.Helper()
	limits = NewLimits(LimitOptions{Searches: 2, Logger: quiet()})
	limits.kinds[Searches].wait = time.Millisecond
	app := New(Options{Logger: quiet(), Limits: limits})
	auth := NewAuth(AuthDeps{Tokens: newStore(), Now: time.Now})
	app.Get("/search", auth.Require(account.IoT, APIStyle(Bearer)), Search, func(c *fiber.Ctx) error {
		Write(c, write)
		return nil
	})
	return serve(t, app), limits
}

const searchRequest = "GET /search HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer iot\r\n\r\n"

// running is how many searches run.
func running(l *Limits) int { return l.Stats().InFlight["searches"] }

func TestASearchHasItsSlotUntilItsAnswerIsWritten(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	addr, limits := searching(t, func(w *bufio.Writer) error {
		<-end
		_, err := w.WriteString("the end")
		return err
	})
	conn := dial(t, addr)
	write(t, conn, searchRequest)
	relaytest.Eventually(t, "the search runs", func() (any, bool) { n := running(limits); return n, n == 1 })
	req := relaytest.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/search", nil))(t)
	req.Header.Set("Authorization", "Bearer iot")
	resp := relaytest.Must(http.DefaultClient.Do(req))(t)
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "Too many searches") {
		t.Errorf("a search beyond the account's share: %d %s", resp.StatusCode, body)
	}
	relaytest.Equal(t, "the refusals", limits.Stats().Refused[[2]string{"searches", string(byShare)}], 1)
	close(end)
	r := bufio.NewReader(conn)
	answer := relaytest.Must(http.ReadResponse(r, nil))(t)
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if string(text) != "the end" || err != nil {
		t.Errorf("the answer is %q, %v", text, err)
	}
	relaytest.Eventually(t, "no search runs", func() (any, bool) { n := running(limits); return n, n == 0 })
}

func TestASearchEndsWhenItsClientHasLeft(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	addr, limits := searching(t, func(w *bufio.Writer) (err error) {
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
		t.Errorf("the search ended with %v", err)
	}
	relaytest.Eventually(t, "no search runs", func() (any, bool) { n := running(limits); return n, n == 0 })
}

// An answer that breaks off does not look complete.
func TestAnAnswerThatFailsIsCutOff(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w *bufio.Writer) error{
		"an error": func(w *bufio.Writer) error {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2*minBuffer))
			return errors.New("the rest is missing")
		},
		"a panic": func(w *bufio.Writer) error {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 2*minBuffer))
			panic("the rest is missing")
		},
	} {
		addr, _ := searching(t, write)
		req := relaytest.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/search", nil))(t)
		req.Header.Set("Authorization", "Bearer iot")
		resp := relaytest.Must(http.DefaultClient.Do(req))(t)
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the answer looks complete", name)
		}
		_ = resp.Body.Close()
	}
}
