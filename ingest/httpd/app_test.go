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
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnswersToErrors(t *testing.T) {
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
	app.Get("/json", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"b": "a&b<c>é", "a": 1}) })
	app.Use(NotFound)
	cases := []struct {
		name, path string
		status     int
		want       string
	}{
		{"a back end that is down", "/unavailable", 503, `{"message":"Service temporarily unavailable. Please try again later."}`},
		{"an unexpected error", "/unexpected", 500, `{"message":"Internal error. Request %s."}`},
		{"a panic", "/panic", 500, `{"message":"Internal error. Request %s."}`},
		{"an answer that cannot be encoded", "/infinite", 500, `{"message":"Internal error. Request %s."}`},
		{"an error of Fiber keeps its message", "/fiber", 418, `{"message":"Short & stout <>."}`},
		{"an unknown path", "/nowhere", 404, `{"message":"Not found."}`},
		{"members are sorted and not escaped", "/json", 200, `{"a":1,"b":"a&b<c>é"}`},
		{"no error", "/fine", 200, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, header := answertest.Send(t, app, answertest.Request("GET", tc.path, ""))
			id := header.Get("X-Request-Id")
			relaytest.Equal(t, "the status", status, tc.status)
			relaytest.Equal(t, "the answer", body, strings.ReplaceAll(tc.want, "%s", id))
			answertest.NotContains(t, "the answer", body, "secret")
			if tc.status == 503 && header.Get("Retry-After") == "" {
				t.Error("the answer has no Retry-After")
			}
			if !strings.HasPrefix(id, "s-") {
				t.Errorf("request id = %q, want the prefix s-", id)
			}
		})
	}
	answertest.Contains(t, "the log", log.String(), "secret panic", "secret detail", "stack=")
}

// serve serves an app until the test ends, and returns its address.
func serve(t *testing.T, app *App) string {
	t.Helper()
	addr, _ := serveOn(t, app, nil, nil)
	return addr
}

// serveOn serves an app with TLS, unless secure is nil, and returns its address and listener.
func serveOn(t *testing.T, app *App, secure *tls.Config, limits *Limits) (string, *Listener) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	relaytest.NoError(t, err)
	if limits == nil {
		limits = NewLimits(LimitOptions{})
	}
	conns, ended := Listen(listener, secure, limits), make(chan error, 1)
	go func() { ended <- app.Listener(conns) }()
	t.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return listener.Addr().String(), conns
}

// dial opens a connection, which is closed before the app shuts down.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// readAll returns the bytes received until the connection ends.
func readAll(t *testing.T, conn net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(conn)
	relaytest.NoError(t, err)
	return string(b)
}

func TestAmbiguousRequestsAreRefused(t *testing.T) {
	app := New(Options{Logger: discardLogger(), BodyLimit: 1000})
	app.All("/", func(c *fiber.Ctx) error {
		b, err := RawBody(c, 1000)
		if err != nil {
			return err
		}
		return c.SendString(strconv.Itoa(len(b)))
	})
	addr := serve(t, app)
	const (
		post        = "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: s3cret\r\n"
		end         = "Connection: close\r\n\r\n"
		nextRequest = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	)
	for _, tc := range []struct{ name, request, want string }{
		{"a length", post + "Content-Length: 2\r\n" + end + "ab", "200 2"},
		{"chunks", post + "Transfer-Encoding: chunked\r\n" + end + "2\r\nab\r\n0\r\n\r\n", "200 2"},
		{"an empty chunked body", post + "Transfer-Encoding: Chunked\r\n" + end + "0\r\n\r\n", "200 0"},
		{"an empty line before the request", "\r\n" + post + end, "200 0"},
		{"spaces around a value", post + "X-A: \t b \t\r\nX-B:\r\n" + end, "200 0"},
		{"chunks and a length", post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a length and chunks", post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a length and an empty chunked body", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a length of zero and an empty chunked body", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"the encoding identity", post + "Transfer-Encoding: identity\r\n\r\n" + nextRequest, "400 "},
		{"the encoding identity and a length", post + "Content-Length: 2\r\nTransfer-Encoding: identity\r\n\r\nab" + nextRequest, "400 "},
		{"two encodings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"two headers with the encoding chunked", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc" + nextRequest, "400 "},
		{"two lengths in one header", post + "Content-Length: 2, 2\r\n\r\nab" + nextRequest, "400 "},
		{"a length with a sign", post + "Content-Length: +2\r\n\r\nab" + nextRequest, "400 "},
		{"a folded line", post + "X-A: b\r\n c\r\n\r\n" + nextRequest, "400 "},
		{"a folded line with a tab", post + "Content-Length: 0\r\nX-A: b\r\n\tTransfer-Encoding: chunked\r\n\r\n" + nextRequest, "400 "},
		{"a folded first header", "POST / HTTP/1.1\r\n Host: h\r\n\r\n" + nextRequest, "400 "},
		{"a space before the colon", post + "Content-Length : 2\r\n\r\nab" + nextRequest, "400 "},
		{"a tab before the colon", post + "X-A\t: 2\r\n\r\n" + nextRequest, "400 "},
		{"a space within a name", post + "X A: 2\r\n\r\n" + nextRequest, "400 "},
		{"a line without a colon", post + "Content-Length\r\n\r\n" + nextRequest, "400 "},
		{"a line without a name", post + ": 2\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF after the request line", "POST / HTTP/1.1\nHost: h\r\nAuthorization: s3cret\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF after a header", post + "X-A: b\nX-B: c\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF at the end", post + "Content-Length: 2\r\n\nab" + nextRequest, "400 "},
		{"only bare LFs", "POST / HTTP/1.1\nHost: h\nAuthorization: s3cret\n\n", "400 "},
		{"a bare LF before the request", "\nPOST / HTTP/1.1\r\nHost: h\r\nAuthorization: s3cret\r\n\r\n", "400 "},
		{"a bare CR", post + "X-A: b\rContent-Length: 2\r\n\r\nab" + nextRequest, "400 "},
		{"an invalid method", "P@ST / HTTP/1.1\r\nHost: h\r\nAuthorization: s3cret\r\n\r\n" + nextRequest, "400 "},
		{"an unknown version", "POST / HTTP/3\r\nHost: h\r\nAuthorization: s3cret\r\n\r\n" + nextRequest, "400 "},
		{"an encoding with a vertical tab", post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"an encoding that ends with chunked", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"the encodings chunked and identity", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"the encoding chunked twice in one header", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"the encoding chunked with a parameter", post + "Transfer-Encoding: chunked; q=1\r\n\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a length in hexadecimal", post + "Content-Length: 0x2\r\n\r\nab" + nextRequest, "400 "},
		{"an empty length", post + "Content-Length:\r\n\r\nab" + nextRequest, "400 "},
		{"a negative length", post + "Content-Length: -1\r\n\r\nab" + nextRequest, "400 "},
		{"a length that overflows", post + "Content-Length: 18446744073709551618\r\n\r\nab" + nextRequest, "400 "},
		{"a chunk size that overflows", post + "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a negative chunk size", post + "Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"an empty chunk size", post + "Transfer-Encoding: chunked\r\n\r\n\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a chunk longer than its size", post + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF after a chunk size", post + "Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF after a chunk", post + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\n0\r\n\r\n" + nextRequest, "400 "},
		{"a bare LF in a chunk extension", post + "Transfer-Encoding: chunked\r\n\r\n2;a\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"no Host header", "POST / HTTP/1.1\r\nAuthorization: s3cret\r\n\r\n" + nextRequest, "400 "},
		{"a chunk size with the prefix 0x", post + "Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n" + nextRequest, "400 "},
		{"a head above the limit", post + "X-A: " + strings.Repeat("x", 20_000) + "\r\n\r\n", "431 "},
		{"a body above the limit", post + "Content-Length: 1001\r\n" + end + strings.Repeat("x", 1001), "413 "},
		{"a chunked body above the limit", post + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) + "\r\n0\r\n\r\n" + nextRequest, "413 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial(t, addr)
			write(t, conn, tc.request)
			got := readAll(t, conn)
			head, body, _ := strings.Cut(got, "\r\n\r\n")
			status, _, _ := strings.Cut(strings.TrimPrefix(head, "HTTP/1.1 "), " ")
			answertest.HasPrefix(t, "the answer", status+" "+body, tc.want)
			relaytest.Equal(t, "the number of answers", strings.Count(got, "Date: "), 1)
			answertest.NotContains(t, "the answer", got, "s3cret")
			answertest.Contains(t, "the head of the answer", head, "Connection: close", "X-Request-Id: ")
		})
	}
}

// chunkedBodies returns chunked bodies and the answers to them. If truncated is set, the connection
// ends after the body.
func chunkedBodies() []struct {
	name, body, want string
	truncated        bool
} {
	return []struct {
		name, body, want string
		truncated        bool
	}{
		{"extensions", "2;a=b;c=\"d\"\r\nab\r\n0;e\r\n\r\n", "200 2", false},
		{"a trailer", "2\r\nab\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n", "200 2", false},
		{"a chunk size with zeros and a capital digit", "000A\r\n0123456789\r\n00\r\n\r\n", "200 10", false},
		{"a trailer with a bare LF", "2\r\nab\r\n0\r\nX-Sum: 1\n\r\n", "400 ", false},
		{"a last line with a bare LF", "2\r\nab\r\n0\r\n\n", "400 ", false},
		{"a bare LF after a trailer", "2\r\nab\r\n0\r\nX-Sum: 1\r\n\n", "400 ", false},
		{"a folded trailer", "2\r\nab\r\n0\r\nX-Sum: 1\r\n 2\r\n\r\n", "400 ", false},
		{"a trailer without a colon", "2\r\nab\r\n0\r\nX-Sum\r\n\r\n", "400 ", false},
		{"a trailer with a space before the colon", "2\r\nab\r\n0\r\nX-Sum : 1\r\n\r\n", "400 ", false},
		{"a space after a chunk size", "2 \r\nab\r\n0\r\n\r\n", "400 ", false},
		{"a tab after a chunk size", "2\t\r\nab\r\n0\r\n\r\n", "400 ", false},
		{"a space after the last chunk size", "2\r\nab\r\n0 \r\n\r\n", "400 ", false},
		{"a space before a chunk size", " 2\r\nab\r\n0\r\n\r\n", "400 ", false},
		{"truncated within a chunk", "2\r\na", "400 ", true},
		{"truncated after a chunk", "2\r\nab\r\n", "400 ", true},
		{"truncated after the last chunk size", "2\r\nab\r\n0\r\n", "400 ", true},
		{"truncated within the last line", "2\r\nab\r\n0\r\n\r", "400 ", true},
		{"truncated after a trailer", "2\r\nab\r\n0\r\nX-Sum: 1\r\n", "400 ", true},
		{"truncated within a trailer", "2\r\nab\r\n0\r\nX-Su", "400 ", true},
	}
}

// The framing of a chunked body is checked when the bytes arrive in one write, one by one, and
// after another request, with and without TLS.
func TestChunkedBodiesAreCheckedStrictly(t *testing.T) {
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tlsServer.Close)
	clientConfig := tlsServer.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	clientConfig.ServerName = "example.com"
	app := New(Options{Logger: discardLogger(), BodyLimit: 1000})
	var bodyCount atomic.Int64
	app.All("/", func(c *fiber.Ctx) error {
		b, err := RawBody(c, 1000)
		if err != nil {
			return err
		}
		bodyCount.Add(1)
		return c.SendString(strconv.Itoa(len(b)))
	})
	plainAddr := serve(t, app)
	secureAddr, _ := serveOn(t, app, &tls.Config{Certificates: tlsServer.TLS.Certificates}, nil)
	const (
		firstPost = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
		post      = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
	)
	for name, open := range map[string]func() net.Conn{
		"without TLS": func() net.Conn { return dial(t, plainAddr) },
		"with TLS":    func() net.Conn { return tls.Client(dial(t, secureAddr), clientConfig) },
	} {
		for _, tc := range chunkedBodies() {
			for _, delivery := range []string{"in one write", "byte by byte", "after another request"} {
				t.Run(tc.name+" "+name+" "+delivery, func(t *testing.T) {
					conn, earlier, want := open(), bodyCount.Load(), tc.want
					switch delivery {
					case "in one write":
						write(t, conn, post+tc.body)
					case "byte by byte":
						for _, b := range []byte(post + tc.body) {
							write(t, conn, string(b))
						}
					default:
						write(t, conn, firstPost+post+tc.body)
						want = "200 3 " + tc.want
					}
					if tc.truncated {
						relaytest.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
					}
					var got []string
					r := bufio.NewReader(conn)
					for {
						resp, err := http.ReadResponse(r, nil)
						if err != nil {
							break
						}
						body := string(relaytest.Must(io.ReadAll(resp.Body))(t))
						if resp.StatusCode != 200 {
							body = ""
						}
						got = append(got, strconv.Itoa(resp.StatusCode)+" "+body)
					}
					relaytest.Equal(t, "the answers", strings.Join(got, " "), want)
					relaytest.Equal(t, "the number of bodies read", bodyCount.Load()-earlier, int64(strings.Count(want, "200")))
				})
			}
		}
	}
}

// The lines of each head on a connection are checked, and bodies are not.
func TestABareLFInALaterHeadIsRefused(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.All("/", func(c *fiber.Ctx) error { _, err := RawBody(c, 1000); return err })
	conn := dial(t, serve(t, app))
	r := bufio.NewReader(conn)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\nGET / HTTP/1.1\nHost: h\nX: 23\n\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		write(t, conn, request)
		resp, err := http.ReadResponse(r, nil)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the status", resp.StatusCode, 200)
	}
	write(t, conn, "GET / HTTP/1.1\nHost: h\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status", resp.StatusCode, 400)
	relaytest.Equal(t, "the connection is closed", resp.Close, true)
}

func TestTheOffsetOfABareLFDoesNotDependOnPieces(t *testing.T) {
	for text, want := range map[string]int{
		"POST / HTTP/1.1\r\nContent-length:\t5 \r\n\r\nbo\ndy": -1,
		"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n\n":          31,
		"GET / HTTP/1.1\nHost: h\r\n\r\n":                      14,
		"GET / HTTP/1.1\r\nHost: h\n\r\n":                      23,
		"GET / HTTP/1.1\r\nHost: h\r\n\n":                      25,
		"\nGET / HTTP/1.1\r\n":                                 0,
	} {
		for size := 1; size <= len(text); size++ {
			var f framing
			got := -1
			for start := 0; start < len(text) && got < 0; start += size {
				if offset := f.follow([]byte(text[start:min(start+size, len(text))])); offset >= 0 {
					got = start + offset
				}
			}
			if got != want {
				t.Errorf("%q in pieces of %d: offset = %d, want %d", text, size, got, want)
			}
			if want < 0 && f.completeCount != 1 {
				t.Errorf("%q in pieces of %d: complete requests = %d, want 1", text, size, f.completeCount)
			}
		}
	}
}
