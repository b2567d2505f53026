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

func packed(t *testing.T, text string, pack func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pack(&b)
	relaytest.NoError(t, err)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	relaytest.NoError(t, w.Close())
	return b.String()
}

func gzipped(w io.Writer) (io.WriteCloser, error)  { return gzip.NewWriter(w), nil }
func zlibbed(w io.Writer) (io.WriteCloser, error)  { return zlib.NewWriter(w), nil }
func deflated(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 9) }

func TestBody(t *testing.T) {
	const limit = 1000
	app := New(Options{Logger: quiet(), BodyLimit: 100_000})
	app.Post("/", func(c *fiber.Ctx) error {
		b, err := Body(c, limit)
		if err != nil {
			return err
		}
		return c.SendString(strconv.Itoa(len(b)))
	})
	whole, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	bomb := packed(t, strings.Repeat("\x00", 50<<20), gzipped)
	cases := []struct {
		name, encoding, body string
		status               int
		want                 string
	}{
		{"as it is", "", whole, 200, "1000"},
		{"as it is, named so", "Identity", whole, 200, "1000"},
		{"as it is and a byte too long", "", over, 413, "Request Entity Too Large"},
		{"gzip", "GZIP", packed(t, whole, gzipped), 200, "1000"},
		{"gzip that grows a byte too long", "gzip", packed(t, over, gzipped), 413, "Request Entity Too Large"},
		{"a bomb", "gzip", bomb, 413, "Request Entity Too Large"},
		{"deflate in zlib", "deflate", packed(t, whole, zlibbed), 200, "1000"},
		{"deflate without", "deflate", packed(t, whole, deflated), 200, "1000"},
		{"deflate a byte too long", "deflate", packed(t, over, zlibbed), 413, "Request Entity Too Large"},
		{"gzip cut short", "gzip", packed(t, whole, gzipped)[:20], 400, "not what Content-Encoding says"},
		{"no gzip", "gzip", "{}", 400, "not what Content-Encoding says"},
		{"no deflate", "deflate", "\xff\xff", 400, "not what Content-Encoding says"},
		{"nothing as gzip", "gzip", "", 400, "not what Content-Encoding says"},
		{"an unknown encoding", "br", "x", 415, "Content-Encoding br is not supported."},
		{"two encodings", "gzip, gzip", "x", 415, "Content-Encoding gzip, gzip is not supported."},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := answertest.Request("POST", "/", tc.body)
			if tc.encoding != "" {
				r.Header.Set("Content-Encoding", tc.encoding)
			}
			status, body, _ := answertest.Ask(t, app, r)
			relaytest.Equal(t, "the status", status, tc.status)
			answertest.Contains(t, "the answer", body, tc.want)
		})
	}
}

// held is an app whose handler reads a body, says so, and waits.
func held(t *testing.T, o Options) (addr string, read chan error, end chan struct{}) {
	t.Helper()
	o.Logger = quiet()
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

func TestAnAnnouncedLengthTakesNoMemory(t *testing.T) {
	const connections, announced = 50, 8_000_000
	app := New(Options{Logger: quiet()})
	came := make(chan struct{}, connections)
	app.Post("/", func(c *fiber.Ctx) error {
		came <- struct{}{}
		_, err := Body(c, announced)
		return err
	})
	addr := serve(t, app)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range connections {
		conn := dial(t, addr)
		write(t, conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\nx", announced))
		<-came
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > connections*100<<10 {
		t.Errorf("%d bytes for %d bodies of which one byte each came", grown, connections)
	}
}

// A refusal does not wait for the body, and the connection ends: what follows
// would be read as a request.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	app := New(Options{Logger: quiet()})
	app.Post("/", func(c *fiber.Ctx) error { return Message(c, 401, "Unauthenticated.") })
	app.Use(NotFound)
	addr := serve(t, app)
	for _, tc := range []struct{ name, request, want string }{
		{"a length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "401"},
		{"chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n7a1200\r\nx", "401"},
		{"another path", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "404"},
		{"an unknown method", "BREW / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\nx", "400"},
		{"more than any body may have", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\nx", "413"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dial(t, addr)
			write(t, conn, tc.request)
			answers := all(t, conn)
			answertest.Begins(t, "the answer", answers, "HTTP/1.1 "+tc.want)
			relaytest.Equal(t, "the number of answers", strings.Count(answers, "HTTP/1.1"), 1)
			answertest.Contains(t, "the answer", answers, "Connection: close")
		})
	}
}

// A connection goes on after a refusal if the body is there already.
func TestAShortUnreadBodyIsDiscarded(t *testing.T) {
	app := New(Options{Logger: quiet()})
	app.Post("/", func(c *fiber.Ctx) error { return Message(c, 401, "Unauthenticated.") })
	conn := dial(t, serve(t, app))
	in := bufio.NewReader(conn)
	for range 3 {
		write(t, conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 32\r\n\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		relaytest.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the status", resp.StatusCode, 401)
		relaytest.Equal(t, "the connection is closed", resp.Close, false)
	}
}

func TestBodiesShareABudget(t *testing.T) {
	addr, read, end := held(t, Options{Limits: NewLimits(LimitOptions{Unauthenticated: 50_000, Logger: quiet()})})
	post := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("x", 40_000)
	first := dial(t, addr)
	write(t, first, post)
	relaytest.NoError(t, <-read)
	second := dial(t, addr)
	write(t, second, post)
	if err := <-read; relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("the second: %v", err)
	}
	close(end)
	answers := all(t, second)
	answertest.Begins(t, "the answer to the second", answers, "HTTP/1.1 503")
	answertest.Contains(t, "the answer to the second", answers, "Retry-After: ")
	resp, err := http.ReadResponse(bufio.NewReader(first), nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status of the first", resp.StatusCode, 200)
	write(t, first, post)
	if err := <-read; err != nil {
		t.Errorf("after the first was answered: %v", err)
	}
}

// script is a connection that says what it is told to, and then that time is up.
type script struct {
	net.Conn
	says []string
	due  []time.Time // the deadlines that were set
	got  strings.Builder
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.says) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, s.says[0])
	s.says = s.says[1:]
	return n, nil
}
func (s *script) Write(b []byte) (int, error)        { return s.got.Write(b) }
func (s *script) SetReadDeadline(at time.Time) error { s.due = append(s.due, at); return nil }
func (s *script) SetWriteDeadline(time.Time) error   { return nil }
func (s *script) Close() error                       { return nil }
func (s *script) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (s *script) LocalAddr() net.Addr                { return &net.TCPAddr{} }

func TestASlowBodyEndsEarly(t *testing.T) {
	app := New(Options{Logger: quiet()})
	app.Post("/", func(c *fiber.Ctx) error { _, err := Body(c, 1<<20); return err })
	app.Handler() // builds the routes
	conn := &script{says: []string{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\nx", strings.Repeat("x", 16_000)}}
	relaytest.NoError(t, app.Server().ServeConn(conn))
	answertest.Begins(t, "the answer", conn.got.String(), "HTTP/1.1 408")
	answertest.Contains(t, "the answer", conn.got.String(), "Connection: close")
	if last := time.Until(conn.due[len(conn.due)-1]); last > bodyGrace+time.Second {
		t.Errorf("the rest may take %s", last)
	}
	began := time.Now()
	r := timedBody{conn: conn, body: strings.NewReader(strings.Repeat("x", 200_000)), began: began}
	for _, want := range []time.Duration{bodyGrace, bodyGrace + time.Second} {
		if _, err := io.ReadFull(&r, make([]byte, bodyRate)); err != nil {
			t.Fatal(err)
		}
		if got := conn.due[len(conn.due)-1].Sub(began); got != want {
			t.Errorf("after %d bytes %s, want %s", r.read-bodyRate, got, want)
		}
	}
}
