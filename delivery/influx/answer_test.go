package influx_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// peer is a server that says it is InfluxDB 2 and answers writes as told.
func peer(t *testing.T, write http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Influxdb-Version", "v2.7.1")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /api/v2/write", write)
	mux.HandleFunc("POST /api/v2/query", func(http.ResponseWriter, *http.Request) {}) // it holds nothing
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// says answers as InfluxDB 2 does.
func says(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Platform-Error-Code", code)
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%q,"message":%q}`, code, message)
}

func lines(r *http.Request) []string {
	b, _ := io.ReadAll(r.Body)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func batch(n int) iot.Batch {
	var b iot.Batch
	for i := range n {
		b.Points = append(b.Points, reading(i, fmt.Sprintf("kind%d", i%7)))
	}
	return b
}

func wantPaused(t *testing.T, err error, status int) {
	t.Helper()
	e, ok := errors.AsType[*influx.Error](err)
	if !ok || e.Status != status || !e.Paused() || relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error %v, want a paused one with status %d", err, status)
	}
}

func TestAnswersThatAreNotTheLinesFault(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name       string
		status     int
		header     string
		body       string
		wantWait   time.Duration
		wantPaused bool
		wantReason string
	}{
		{"401 waits for a person", 401, "", `{"code":"unauthorized","message":"unauthorized access"}`, 0, true, "unauthorized access"},
		{"403 waits for a person", 403, "", `{"code":"forbidden","message":"no"}`, 0, true, "no"},
		{"404 waits for a person", 404, "", `{"code":"not found","message":"bucket \"b\" not found"}`, 0, true, `bucket "b" not found`},
		{"a redirection is not followed", 307, "", ``, 0, true, "Temporary Redirect"},
		{"a 400 that no InfluxDB has said costs no reading", 400, "", `Client sent an HTTP request to an HTTPS server.`, 0, true, "Client sent"},
		{"429 says how many seconds", 429, "17", `{"code":"too many requests","message":"rate"}`, 17 * time.Second, false, "rate"},
		{"429 says until when", 429, "Sun, 01 Mar 2026 12:01:00 GMT", ``, time.Minute, false, "Too Many Requests"},
		{"a date that has passed is no wait", 503, "Sun, 01 Mar 2026 11:00:00 GMT", ``, 0, false, "Service Unavailable"},
		{"a header that is neither is no wait", 503, "soon", ``, 0, false, "Service Unavailable"},
		{"500 is tried again", 500, "", `{"code":"internal error","message":"disk"}`, 0, false, "disk"},
		{"502 of a proxy is tried again", 502, "", `<html>bad gateway</html>`, 0, false, "bad gateway"},
		{"503 says how many seconds", 503, "5", ``, 5 * time.Second, false, "Service Unavailable"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			server := peer(t, func(w http.ResponseWriter, _ *http.Request) {
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
			s := open(t, influx.Options{URL: server.URL, Token: "t", Org: "o", Bucket: "b", Now: func() time.Time { return now }})
			refused, err := s.Write(t.Context(), batch(3))
			e, ok := errors.AsType[*influx.Error](err)
			if !ok || len(refused) > 0 || calls.Load() != 1 {
				t.Fatalf("refused %v, error %v after %d calls", refused, err, calls.Load())
			}
			if e.Status != tc.status || e.RetryAfter() != tc.wantWait || e.Paused() != tc.wantPaused || !strings.Contains(e.Reason, tc.wantReason) {
				t.Errorf("error %v: wait %v, paused %v", e, e.RetryAfter(), e.Paused())
			}
			if relay.KindOf(err) != relay.KindUnavailable {
				t.Errorf("kind %v", relay.KindOf(err))
			}
			if s.Ping(t.Context()) == nil {
				t.Error("Ping: no error")
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
		calls  int // at most
	}{
		{"one bad line of 5,000 by 400", 400, 5000, func(i int) bool { return i == 1234 }, 27},
		{"two bad lines by 422", 422, 100, func(i int) bool { return i == 0 || i == 99 }, 30},
		{"only bad lines", 400, 9, func(int) bool { return true }, 17},
		{"one line alone, and it is bad", 422, 1, func(int) bool { return true }, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			got := map[string]bool{}
			server := peer(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				all := lines(r)
				isBad := func(line string) bool {
					i := 0
					_, err := fmt.Sscanf(line[strings.Index(line, " value=")+7:], "%d", &i)
					return err != nil || tc.bad(i)
				}
				if i := slices.IndexFunc(all, isBad); i >= 0 {
					says(w, tc.status, "invalid", "unable to parse '"+all[i]+"': bad")
					return
				}
				for _, l := range all {
					got[l] = true
				}
				w.WriteHeader(http.StatusNoContent)
			})
			s := open(t, influx.Options{URL: server.URL, Bucket: "b"})
			refused, err := s.Write(t.Context(), batch(tc.n))
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for i := range tc.n {
				if tc.bad(i) {
					if want >= len(refused) || refused[want].Point != i || refused[want].Uplink != -1 || !strings.Contains(refused[want].Reason, "unable to parse") {
						t.Fatalf("line %d is not among the refused: %v", i, refused)
					}
					want++
				}
			}
			if len(refused) != want || len(got) != tc.n-want {
				t.Errorf("%d refused and %d stored of %d", len(refused), len(got), tc.n)
			}
			if int(calls.Load()) > tc.calls {
				t.Errorf("%d calls, want at most %d", calls.Load(), tc.calls)
			}
		})
	}
}

// A partial write of 1.x: 400, the reason in a header, all but one kind stored.
func TestAPartialWriteOfAWholeMeasurementTakesFewCalls(t *testing.T) {
	var calls atomic.Int32
	server := peer(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		dropped := 0
		for _, l := range lines(r) {
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
	s := open(t, influx.Options{URL: server.URL, Bucket: "b"})
	refused, err := s.Write(t.Context(), batch(4900))
	if err != nil || len(refused) != 700 {
		t.Fatalf("%d refused, want 700; error %v", len(refused), err)
	}
	for _, r := range refused {
		if r.Point%7 != 3 || !strings.Contains(r.Reason, "field type conflict") {
			t.Fatalf("refused %+v", r)
		}
	}
	if calls.Load() > 60 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestALargeBodyIsHalved(t *testing.T) {
	var stored atomic.Int32
	server := peer(t, func(w http.ResponseWriter, r *http.Request) {
		all := lines(r)
		if n := len(strings.Join(all, "\n")); n > 2000 {
			says(w, http.StatusRequestEntityTooLarge, "request too large", "too much")
			return
		}
		stored.Add(int32(len(all)))
		w.WriteHeader(http.StatusNoContent)
	})
	s := open(t, influx.Options{URL: server.URL, Bucket: "b"})
	b := batch(100)
	b.Points[50].Text, b.Points[50].IsText = strings.Repeat("long ", 1000), true
	refused, err := s.Write(t.Context(), b)
	if err != nil || len(refused) != 1 || refused[0].Point != 50 || stored.Load() != 99 {
		t.Errorf("refused %v, error %v, %d stored", refused, err, stored.Load())
	}
}

func TestAnErrorHalfWayIsTheWholeBatchs(t *testing.T) {
	var calls atomic.Int32
	server := peer(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 2 {
			says(w, http.StatusInternalServerError, "internal error", "disk")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s := open(t, influx.Options{URL: server.URL, Bucket: "b", MaxLines: 10})
	if refused, err := s.Write(t.Context(), batch(30)); err == nil || refused != nil || calls.Load() != 2 {
		t.Errorf("refused %v, error %v after %d calls", refused, err, calls.Load())
	}
}

func TestALongBatchIsCutIntoCalls(t *testing.T) {
	var sizes []int
	server := peer(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query(); got.Get("precision") != "ns" || got.Get("bucket") != "b" || got.Get("org") != "o" || r.Header.Get("Authorization") != "Token t" {
			t.Errorf("request %v %v", r.URL, r.Header)
		}
		sizes = append(sizes, len(lines(r)))
		w.WriteHeader(http.StatusNoContent)
	})
	s := open(t, influx.Options{URL: server.URL, Token: "t", Org: "o", Bucket: "b"})
	if _, err := s.Write(t.Context(), batch(12_000)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sizes, []int{5000, 5000, 2000}) {
		t.Errorf("lines per call: %v", sizes)
	}
}

func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := open(t, influx.Options{URL: server.URL, Bucket: "b"})
	_, err := s.Write(t.Context(), batch(1))
	if e, ok := errors.AsType[*influx.Error](err); !ok || e.Status != 0 || e.Paused() || relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("error %v", err)
	}
}

func TestAServerThatHangsIsLeftAtTheDeadline(t *testing.T) {
	release := make(chan struct{})
	server := peer(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes
	cases := []struct {
		name    string
		timeout time.Duration // the store's
		caller  time.Duration
	}{
		{"the caller's", 0, 50 * time.Millisecond},
		{"its own", 50 * time.Millisecond, time.Minute},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, influx.Options{URL: server.URL, Bucket: "b", Timeout: tc.timeout})
			ctx, cancel := context.WithTimeout(t.Context(), tc.caller)
			defer cancel()
			_, err := s.Write(ctx, batch(1))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// elsewhere sends every request to one address, so that a URL with a foreign
// host can be used.
type elsewhere struct{ host string }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = e.host
	return http.DefaultTransport.RoundTrip(r)
}

func TestBodiesToOtherHostsAreCompressed(t *testing.T) {
	var encodings []string
	server := peer(t, func(w http.ResponseWriter, r *http.Request) {
		encodings = append(encodings, r.Header.Get("Content-Encoding"))
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := io.ReadAll(z); err != nil || !strings.HasPrefix(string(b), "kind0,account=1,") {
				t.Errorf("body %q, %v", b, err)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	host := strings.TrimPrefix(server.URL, "http://")
	for _, o := range []influx.Options{
		{URL: server.URL, Bucket: "b"},
		{URL: "http://influx.example:8086", Bucket: "b", Transport: elsewhere{host}},
		{URL: "http://influx.example:8086", Bucket: "b", Transport: elsewhere{host}, NoGzip: true},
	} {
		if _, err := open(t, o).Write(t.Context(), batch(1)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(encodings, []string{"", "gzip", ""}) {
		t.Errorf("encodings %q", encodings)
	}
}
