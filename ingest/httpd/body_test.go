package httpd

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func compress(t *testing.T, text string, newWriter func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := newWriter(&b)
	relaytest.NoError(t, err)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	relaytest.NoError(t, w.Close())
	return b.String()
}

func gzipWriter(w io.Writer) (io.WriteCloser, error)  { return gzip.NewWriter(w), nil }
func zlibWriter(w io.Writer) (io.WriteCloser, error)  { return zlib.NewWriter(w), nil }
func flateWriter(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 9) }

func TestBodyDecompressesUpToTheLimit(t *testing.T) {
	const limit = 1000
	app := New(Options{Logger: discardLogger(), BodyLimit: 100_000})
	app.Post("/", func(c *fiber.Ctx) error {
		b, err := Body(c, limit)
		if err != nil {
			return err
		}
		return c.SendString(strconv.Itoa(len(b)))
	})
	full, tooLong := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	bomb := compress(t, strings.Repeat("\x00", 50<<20), gzipWriter)
	cases := []struct {
		name, encoding, body string
		status               int
		want                 string
	}{
		{"no encoding", "", full, 200, "1000"},
		{"identity", "Identity", full, 200, "1000"},
		{"a byte above the limit", "", tooLong, 413, "Request Entity Too Large"},
		{"gzip", "GZIP", compress(t, full, gzipWriter), 200, "1000"},
		{"gzip, a byte above the limit", "gzip", compress(t, tooLong, gzipWriter), 413, "Request Entity Too Large"},
		{"a gzip bomb", "gzip", bomb, 413, "Request Entity Too Large"},
		{"deflate in the zlib format", "deflate", compress(t, full, zlibWriter), 200, "1000"},
		{"deflate without the zlib format", "deflate", compress(t, full, flateWriter), 200, "1000"},
		{"deflate, a byte above the limit", "deflate", compress(t, tooLong, zlibWriter), 413, "Request Entity Too Large"},
		{"truncated gzip", "gzip", compress(t, full, gzipWriter)[:20], 400, "does not match Content-Encoding"},
		{"invalid gzip", "gzip", "{}", 400, "does not match Content-Encoding"},
		{"invalid deflate", "deflate", "\xff\xff", 400, "does not match Content-Encoding"},
		{"an empty body as gzip", "gzip", "", 400, "does not match Content-Encoding"},
		{"an unknown encoding", "br", "x", 415, "Content-Encoding br is not supported."},
		{"two encodings", "gzip, gzip", "x", 415, "Content-Encoding gzip, gzip is not supported."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := answertest.Request("POST", "/", tc.body)
			if tc.encoding != "" {
				r.Header.Set("Content-Encoding", tc.encoding)
			}
			status, body, _ := answertest.Send(t, app, r)
			relaytest.Equal(t, "the status", status, tc.status)
			answertest.Contains(t, "the answer", body, tc.want)
		})
	}
}

// serveHeld serves an app with a handler that reads a body, sends the error to read, and waits for
// end.
func serveHeld(t *testing.T, o Options) (addr string, read chan error, end chan struct{}) {
	t.Helper()
	o.Logger = discardLogger()
	app := New(o)
	read, end = make(chan error, 100), make(chan struct{})
	app.Post("/", func(c *fiber.Ctx) error {
		_, err := Body(c, 8<<20)
		read <- err
		<-end
		return err
	})
	return serve(t, app), read, end
}

func TestMemoryGrowsWithReceivedBytes(t *testing.T) {
	const connections, announced = 50, 8_000_000
	app := New(Options{Logger: discardLogger()})
	started := make(chan struct{}, connections)
	app.Post("/", func(c *fiber.Ctx) error {
		started <- struct{}{}
		_, err := Body(c, announced)
		return err
	})
	addr := serve(t, app)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range connections {
		conn := dial(t, addr)
		write(t, conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\nx", announced))
		<-started
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > connections*100<<10 {
		t.Errorf("allocated bytes for %d bodies of one received byte = %d, want at most 100 KiB each", connections, n)
	}
}

// The connection is closed after a refusal, because the body would be read as a request.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.Post("/", func(c *fiber.Ctx) error { return Message(c, 401, "Unauthenticated.") })
	app.Use(NotFound)
	addr := serve(t, app)
	for _, tc := range []struct{ name, request, want string }{
		{"a length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "401"},
		{"chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7a1200\r\nx", "401"},
		{"another path", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "404"},
		{"an unknown method", "BREW / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "400"},
		{"a body above the limit of the app", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\nx", "413"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial(t, addr)
			write(t, conn, tc.request)
			answers := readAll(t, conn)
			answertest.HasPrefix(t, "the answer", answers, "HTTP/1.1 "+tc.want)
			relaytest.Equal(t, "the number of answers", strings.Count(answers, "HTTP/1.1"), 1)
			answertest.Contains(t, "the answer", answers, "Connection: close")
		})
	}
}

// If the body has arrived, the connection stays open after a refusal.
func TestAnUnreadBodyThatHasArrivedIsDiscarded(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.Post("/", func(c *fiber.Ctx) error { return Message(c, 401, "Unauthenticated.") })
	conn := dial(t, serve(t, app))
	r := bufio.NewReader(conn)
	for range 3 {
		write(t, conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 32\r\n\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		relaytest.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the status", resp.StatusCode, 401)
		relaytest.Equal(t, "the connection is closed", resp.Close, false)
	}
}

func TestUnauthenticatedBodiesShareABudget(t *testing.T) {
	addr, read, end := serveHeld(t, Options{Limits: NewLimits(LimitOptions{Unauthenticated: 50_000, Logger: discardLogger()})})
	post := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("x", 40_000)
	firstConn := dial(t, addr)
	write(t, firstConn, post)
	relaytest.NoError(t, <-read)
	secondConn := dial(t, addr)
	write(t, secondConn, post)
	if err := <-read; relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error of the second body = %v, want KindUnavailable", err)
	}
	close(end)
	answers := readAll(t, secondConn)
	answertest.HasPrefix(t, "the answer to the second body", answers, "HTTP/1.1 503")
	answertest.Contains(t, "the answer to the second body", answers, "Retry-After: ")
	resp, err := http.ReadResponse(bufio.NewReader(firstConn), nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status for the first body", resp.StatusCode, 200)
	write(t, firstConn, post)
	if err := <-read; err != nil {
		t.Errorf("error after the first answer = %v, want none", err)
	}
}

// script is a connection from which pieces are read, and then a deadline error.
type script struct {
	net.Conn
	pieces    []string
	deadlines []time.Time // arguments of SetReadDeadline
	written   strings.Builder
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, s.pieces[0])
	s.pieces = s.pieces[1:]
	return n, nil
}
func (s *script) Write(b []byte) (int, error)       { return s.written.Write(b) }
func (s *script) SetReadDeadline(t time.Time) error { s.deadlines = append(s.deadlines, t); return nil }
func (s *script) SetWriteDeadline(time.Time) error  { return nil }
func (s *script) Close() error                      { return nil }
func (s *script) RemoteAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) LocalAddr() net.Addr               { return &net.TCPAddr{} }

func TestASlowBodyTimesOut(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.Post("/", func(c *fiber.Ctx) error { _, err := Body(c, 1<<20); return err })
	app.Handler() // builds the routes
	conn := &script{pieces: []string{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\nx", strings.Repeat("x", 16_000)}}
	relaytest.NoError(t, app.Server().ServeConn(conn))
	answertest.HasPrefix(t, "the answer", conn.written.String(), "HTTP/1.1 408")
	answertest.Contains(t, "the answer", conn.written.String(), "Connection: close")
	if remaining := time.Until(conn.deadlines[len(conn.deadlines)-1]); remaining > bodyGrace+time.Second {
		t.Errorf("time until the deadline = %s, want at most %s", remaining, bodyGrace+time.Second)
	}
	startedAt := time.Now()
	r := timedBody{conn: conn, body: strings.NewReader(strings.Repeat("x", 200_000)), startedAt: startedAt}
	for _, want := range []time.Duration{bodyGrace, bodyGrace + time.Second} {
		if _, err := io.ReadFull(&r, make([]byte, bodyRate)); err != nil {
			t.Fatal(err)
		}
		if got := conn.deadlines[len(conn.deadlines)-1].Sub(startedAt); got != want {
			t.Errorf("time limit after %d bytes = %s, want %s", r.received-bodyRate, got, want)
		}
	}
}
