package httpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

func TestWhatGoesWrongIsAnswered(t *testing.T) {
	var log strings.Builder
	app := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Seed: "s-", BodyLimit: 1000})
	for path, err := range map[string]error{
		"/unavailable": fmt.Errorf("token: %w", relay.Errorf(relay.KindUnavailable, "redis at 10.0.0.1 is down")),
		"/unexpected":  errors.New("secret detail"),
		"/fiber":       fiber.NewError(418, "Short & stout <>."),
		"/fine":        nil,
	} {
		app.Get(path, func(*fiber.Ctx) error { return err })
	}
	app.Get("/panic", func(*fiber.Ctx) error { panic("secret panic") })
	app.Get("/infinite", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"f": func() {}}) })
	app.Get("/given", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"b": "a&b<c>é", "a": 1}) })
	app.Use(NotFound)
	cases := []struct {
		name, path string
		status     int
		want       string
	}{
		{"a back end that is down", "/unavailable", 503, `{"message":"Service temporarily unavailable. Please try again later."}`},
		{"what nobody expected", "/unexpected", 500, `{"message":"Internal error. Request %s."}`},
		{"a panic", "/panic", 500, `{"message":"Internal error. Request %s."}`},
		{"an answer that JSON cannot hold", "/infinite", 500, `{"message":"Internal error. Request %s."}`},
		{"an error of HTTP, its text as it is", "/fiber", 418, `{"message":"Short & stout <>."}`},
		{"no such path", "/nowhere", 404, `{"message":"Not found."}`},
		{"an answer is sorted and not escaped", "/given", 200, `{"a":1,"b":"a&b<c>é"}`},
		{"nothing wrong", "/fine", 200, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, header := ask(t, app, request("GET", tc.path, ""))
			id := header.Get("X-Request-Id")
			if want := strings.ReplaceAll(tc.want, "%s", id); status != tc.status || body != want || strings.Contains(body, "secret") {
				t.Errorf("%d %s, want %d %s", status, body, tc.status, want)
			}
			if tc.status == 503 && header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if !strings.HasPrefix(id, "s-") {
				t.Errorf("request id %q", id)
			}
		})
	}
	if !strings.Contains(log.String(), "secret panic") || !strings.Contains(log.String(), "secret detail") || !strings.Contains(log.String(), "stack=") {
		t.Errorf("the log does not say what went wrong: %s", log.String())
	}
}

// raw sends bytes to a listening app and returns the first line and the body of
// its answer.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

func TestRequestsThatTwoParsersReadInTwoWaysAreRefused(t *testing.T) {
	app := New(Options{Logger: quiet(), BodyLimit: 1000})
	app.Post("/", func(c *fiber.Ctx) error { return c.SendString(strconv.Itoa(len(c.Request().Body()))) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener) }()
	t.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	const head = "POST / HTTP/1.1\r\nHost: h\r\n"
	for _, tc := range []struct{ name, give, want string }{
		{"a length", head + "Content-Length: 2\r\n\r\nab", "200 2"},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "200 2"},
		{"chunks and a length", head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", "400 "},
		{"a length and chunks", head + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nab\r\n0\r\n\r\n", "400 "},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "400 "},
		{"a body over the limit", head + "Content-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001), `413 {"message":"Request Entity Too Large"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := raw(t, listener.Addr().String(), tc.give); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
