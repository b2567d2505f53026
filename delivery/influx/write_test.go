package influx_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// newPeer returns a server with the version of InfluxDB 2 and a handler for writes.
func newPeer(t *testing.T, write http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Influxdb-Version", "v2.7.1")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /api/v2/write", write)
	mux.HandleFunc("POST /api/v2/query", func(http.ResponseWriter, *http.Request) {}) // no readings
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// respond writes an error as InfluxDB 2 does.
func respond(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Platform-Error-Code", code)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%q,"message":%q}`, code, message)
}

func readLines(r *http.Request) []string {
	b, _ := io.ReadAll(r.Body)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func batch(n int) iot.Readings {
	var b iot.Readings
	for i := range n {
		b.Points = append(b.Points, reading(i, fmt.Sprintf("kind%d", i%7)))
	}
	return b
}

// failure is the part of an error that callers use.
type failure struct {
	Status int
	Wait   time.Duration
}

// expectFailure compares an error of the store, which is always KindUnavailable.
func expectFailure(t *testing.T, err error, want failure) {
	t.Helper()
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
	e, ok := errors.AsType[*influx.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want an *influx.Error", err)
	}
	relaytest.Equal(t, "the error", failure{e.Status, e.RetryAfter()}, want)
}

func TestErrorsOfTheServerRefuseNoLine(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name       string
		status     int
		header     string
		body       string
		wantWait   time.Duration
		wantReason string
	}{
		{"401", 401, "", `{"code":"unauthorized","message":"unauthorized access"}`, 0, "unauthorized access"},
		{"403", 403, "", `{"code":"forbidden","message":"no"}`, 0, "no"},
		{"404", 404, "", `{"code":"not found","message":"bucket \"b\" not found"}`, 0, `bucket "b" not found`},
		{"a redirect is not followed", 307, "", ``, 0, "Temporary Redirect"},
		{"a 400 of another server", 400, "", `Client sent an HTTP request to an HTTPS server.`, 0, "Client sent"},
		{"429 with seconds", 429, "17", `{"code":"too many requests","message":"rate"}`, 17 * time.Second, "rate"},
		{"429 with a date", 429, "Sun, 01 Mar 2026 12:01:00 GMT", ``, time.Minute, "Too Many Requests"},
		{"a date in the past is ignored", 503, "Sun, 01 Mar 2026 11:00:00 GMT", ``, 0, "Service Unavailable"},
		{"an invalid header is ignored", 503, "soon", ``, 0, "Service Unavailable"},
		{"500", 500, "", `{"code":"internal error","message":"disk"}`, 0, "disk"},
		{"502 of a proxy", 502, "", `<html>bad gateway</html>`, 0, "bad gateway"},
		{"503 with seconds", 503, "5", ``, 5 * time.Second, "Service Unavailable"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			server := newPeer(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if strings.HasPrefix(tc.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				w.Header().Set("Location", "/ping")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			s := openStore(t, influx.Options{URL: server.URL, Token: "t", Org: "o", Bucket: "b", Now: func() time.Time { return now }})
			refused, err := s.Write(t.Context(), batch(3))
			expectFailure(t, err, failure{tc.status, tc.wantWait})
			if e, ok := errors.AsType[*influx.Error](err); ok && !strings.Contains(e.Reason, tc.wantReason) {
				t.Errorf("reason = %q, want it to contain %q", e.Reason, tc.wantReason)
			}
			relaytest.Equal(t, "the number of refused lines", len(refused), 0)
			relaytest.Equal(t, "the number of calls", calls.Load(), 1)
			if s.Ping(t.Context()) == nil {
				t.Error("Ping returned no error")
			}
		})
	}
}

func TestBadLinesAreFoundAndTheRestIsStored(t *testing.T) {
	cases := []struct {
		name   string
		status int
		n      int
		bad    func(i int) bool
		calls  int // maximum
	}{
		{"one bad line of 5,000 by 400", 400, 5000, func(i int) bool { return i == 1234 }, 27},
		{"two bad lines by 422", 422, 100, func(i int) bool { return i == 0 || i == 99 }, 30},
		{"only bad lines", 400, 9, func(int) bool { return true }, 17},
		{"a single bad line", 422, 1, func(int) bool { return true }, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			got := map[string]bool{}
			server := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				lines := readLines(r)
				isBad := func(line string) bool {
					i := 0
					_, err := fmt.Sscanf(line[strings.Index(line, " value=")+7:], "%d", &i)
					return err != nil || tc.bad(i)
				}
				if i := slices.IndexFunc(lines, isBad); i >= 0 {
					respond(w, tc.status, "invalid", "unable to parse '"+lines[i]+"': bad")
					return
				}
				for _, l := range lines {
					got[l] = true
				}
				w.WriteHeader(http.StatusNoContent)
			})
			s := openStore(t, influx.Options{URL: server.URL, Bucket: "b"})
			refused := relaytest.Must(s.Write(t.Context(), batch(tc.n)))(t)
			var want []iot.RefusedItem
			for i := range tc.n {
				if tc.bad(i) {
					want = append(want, iot.RefusedItem{Point: i, Radio: -1})
				}
			}
			for i := range refused {
				if !strings.Contains(refused[i].Reason, "unable to parse") {
					t.Errorf("reason = %q, want it to contain: unable to parse", refused[i].Reason)
				}
				refused[i].Reason = ""
			}
			relaytest.Equal(t, "the refused lines", refused, want)
			relaytest.Equal(t, "the number of stored lines", len(got), tc.n-len(want))
			if int(calls.Load()) > tc.calls {
				t.Errorf("%d calls, want at most %d", calls.Load(), tc.calls)
			}
		})
	}
}

// The server responds like 1.x to a partial write, with 400 and the reason in a header. It stores
// all lines except the lines of one measurement.
func TestRefusedLinesOfAMeasurementAreFoundWithFewCalls(t *testing.T) {
	var calls atomic.Int32
	server := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		dropped := 0
		for _, l := range readLines(r) {
			if strings.HasPrefix(l, "kind3,") {
				dropped++
			}
		}
		if dropped == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("X-Influxdb-Error", fmt.Sprintf("partial write: field type conflict dropped=%d", dropped))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"partial write: field type conflict"}`)
	})
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b"})
	refused := relaytest.Must(s.Write(t.Context(), batch(4900)))(t)
	relaytest.Equal(t, "the number of refused lines", len(refused), 700)
	for _, r := range refused {
		if r.Point%7 != 3 || !strings.Contains(r.Reason, "field type conflict") {
			t.Fatalf("line %d is refused for %q, want lines of kind3 only, for a conflict", r.Point, r.Reason)
		}
	}
	if calls.Load() > 60 {
		t.Errorf("%d calls, want at most 60", calls.Load())
	}
}

func TestALargeBodyIsHalved(t *testing.T) {
	var stored atomic.Int32
	server := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
		lines := readLines(r)
		if n := len(strings.Join(lines, "\n")); n > 2000 {
			respond(w, http.StatusRequestEntityTooLarge, "request too large", "too much")
			return
		}
		stored.Add(int32(len(lines)))
		w.WriteHeader(http.StatusNoContent)
	})
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b"})
	b := batch(100)
	b.Points[50].Text, b.Points[50].IsText = strings.Repeat("long ", 1000), true
	refused := relaytest.Must(s.Write(t.Context(), b))(t)
	if len(refused) != 1 || refused[0].Point != 50 {
		t.Errorf("the refused lines are %v, want line 50", refused)
	}
	relaytest.Equal(t, "the number of stored lines", stored.Load(), 99)
}

func TestAnErrorOfOneCallFailsTheBatch(t *testing.T) {
	var calls atomic.Int32
	server := newPeer(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 2 {
			respond(w, http.StatusInternalServerError, "internal error", "disk")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b", MaxLines: 10})
	refused, err := s.Write(t.Context(), batch(30))
	if err == nil {
		t.Error("Write returned no error")
	}
	relaytest.Equal(t, "the refused lines", refused, nil)
	relaytest.Equal(t, "the number of calls", calls.Load(), 2)
}

func TestALongBatchIsSplitIntoCalls(t *testing.T) {
	var sizes []int
	server := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
		relaytest.Equal(t, "the parameters", r.URL.Query(), url.Values{"precision": {"ns"}, "bucket": {"b"}, "org": {"o"}})
		relaytest.Equal(t, "Authorization", r.Header.Get("Authorization"), "Token t")
		sizes = append(sizes, len(readLines(r)))
		w.WriteHeader(http.StatusNoContent)
	})
	s := openStore(t, influx.Options{URL: server.URL, Token: "t", Org: "o", Bucket: "b"})
	relaytest.Must(s.Write(t.Context(), batch(12_000)))(t)
	relaytest.Equal(t, "the lines per call", sizes, []int{5000, 5000, 2000})
}

func TestARefusedConnectionIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b"})
	_, err := s.Write(t.Context(), batch(1))
	expectFailure(t, err, failure{})
}

func TestAHangingServerIsAbandonedAtTheDeadline(t *testing.T) {
	release := make(chan struct{})
	server := newPeer(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes
	cases := []struct {
		name    string
		timeout time.Duration // of the store
		caller  time.Duration // the caller's timeout
	}{
		{"deadline of the caller", 0, 50 * time.Millisecond},
		{"timeout of the store", 50 * time.Millisecond, time.Minute},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, influx.Options{URL: server.URL, Bucket: "b", Timeout: tc.timeout})
			ctx, cancel := context.WithTimeout(t.Context(), tc.caller)
			defer cancel()
			_, err := s.Write(ctx, batch(1))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error = %v, want context.DeadlineExceeded", err)
			}
		})
	}
}

// redirectTransport sends every request to host, so that the URL may name another host.
type redirectTransport struct{ host string }

func (r redirectTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.host
	return http.DefaultTransport.RoundTrip(req)
}

func TestBodiesToOtherHostsAreCompressed(t *testing.T) {
	var encodings []string
	server := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
		encodings = append(encodings, r.Header.Get("Content-Encoding"))
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := io.ReadAll(z); err != nil || !strings.HasPrefix(string(b), "kind0,account=1,") {
				t.Errorf("body = %q, error %v, want lines", b, err)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	host := strings.TrimPrefix(server.URL, "http://")
	for _, o := range []influx.Options{
		{URL: server.URL, Bucket: "b"},
		{URL: "http://influx.example:8086", Bucket: "b", Transport: redirectTransport{host}},
		{URL: "http://influx.example:8086", Bucket: "b", Transport: redirectTransport{host}, NoGzip: true},
	} {
		relaytest.Must(openStore(t, o).Write(t.Context(), batch(1)))(t)
	}
	relaytest.Equal(t, "the encodings", encodings, []string{"", "gzip", ""})
}
