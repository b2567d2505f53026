package httpd

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAValidRequestIDOfAClientIsUsed(t *testing.T) {
	app := New(Options{Logger: discardLogger(), Seed: "s-"})
	app.Get("/", func(c *fiber.Ctx) error { return c.SendString(RequestID(c.UserContext())) })
	long := strings.Repeat("a", maxRequestID)
	for name, tc := range map[string]struct {
		header string // X-Request-Id of the request
		used   bool
	}{
		"a UUID":                    {"4b1c9c2e-7a55-4e0f-9d3c-0d6f3b1a2c3d", true},
		"a trace id of a proxy":     {"Root=1-67891233-abcdef012345678912345678", true},
		"the maximum length":        {long, true},
		"no id":                     {"", false},
		"too long":                  {long + "a", false},
		"a blank":                   {"a b", false},
		"a quote":                   {`a"b`, false},
		"a control character":       {"a\tb", false},
		"a character outside ASCII": {"é", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := answertest.Request("GET", "/", "")
			if tc.header != "" {
				r.Header.Set("X-Request-Id", tc.header)
			}
			_, body, header := answertest.Send(t, app, r)
			id := header.Get("X-Request-Id")
			relaytest.Equal(t, "the request id in the context", body, id)
			relaytest.Equal(t, "the id of the client is used", id == tc.header, tc.used)
			if !tc.used {
				answertest.HasPrefix(t, "the generated id", id, "s-")
			}
		})
	}
}

// jsonLog is a buffer for a JSON log.
type jsonLog struct{ relaytest.Buffer }

// requests returns the lines about requests, without the fields that the tests do not compare.
func (l *jsonLog) requests(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.Take()) {
		var m map[string]any
		relaytest.NoError(t, json.Unmarshal([]byte(line), &m))
		if m["msg"] != "request" {
			continue
		}
		for _, name := range []string{"time", "level", "msg", "ms"} {
			delete(m, name)
		}
		lines = append(lines, m)
	}
	return lines
}

func TestTheAccessLogHasALineForEveryRequest(t *testing.T) {
	var log jsonLog
	app := New(Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), AccessLog: true, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}})
	app.Get("/devices/:id", func(c *fiber.Ctx) error { return c.SendString("hello") })
	app.Get("/t/:token", func(c *fiber.Ctx) error { return c.SendStatus(http.StatusNoContent) })
	app.Post("/broken", func(*fiber.Ctx) error { return errors.New("secret detail") })
	app.Get("/panic", func(*fiber.Ctx) error { panic("secret panic") })
	app.Use(NotFound)
	line := func(path, route string, status, bytes float64) map[string]any {
		return map[string]any{"client": "0.0.0.0", "method": "GET", "path": path, "route": route, "status": status, "bytes": bytes, "account": 0.0}
	}
	for _, tc := range []struct {
		name string
		r    *http.Request
		want map[string]any
	}{
		{"a query is omitted", answertest.Request("GET", "/devices/7?token=secret", ""), line("/devices/7", "/devices/:id", 200, 5)},
		{"a token in the path is omitted", answertest.Request("GET", "/t/secret", ""), line("/t/:token", "/t/:token", 204, 0)},
		{"an unknown path", answertest.Request("GET", "/nowhere", ""), line("/nowhere", "/", 404, 24)},
		{"a panic", answertest.Request("GET", "/panic", ""), line("/panic", "/panic", 500, 40)},
		{"a client behind a proxy", answertest.Request("GET", "/devices/7", "", "X-Forwarded-For", "10.9.9.9, 198.51.100.7"), func() map[string]any {
			want := line("/devices/7", "/devices/:id", 200, 5)
			want["client"] = "198.51.100.7"
			return want
		}()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answertest.Send(t, app, tc.r)
			got := log.requests(t)
			if tc.want["status"] == 500.0 && len(got) == 1 {
				delete(got[0], "bytes")
				delete(tc.want, "bytes")
			}
			relaytest.Equal(t, "the lines about requests", got, []map[string]any{tc.want})
		})
	}
	t.Run("an invalid head", func(t *testing.T) {
		conn := dial(t, serve(t, app))
		write(t, conn, "GET / HTTP/1.1\nHost: x\n\n")
		readAll(t, conn)
		got := log.requests(t)
		if len(got) != 1 {
			t.Fatalf("log lines = %v, want 1", got)
		}
		relaytest.Equal(t, "the status", got[0]["status"], any(400.0))
		relaytest.Equal(t, "the client", got[0]["client"], any("127.0.0.1"))
		if got[0]["request_id"] == "" {
			t.Error("the log line has no request id")
		}
	})
}
