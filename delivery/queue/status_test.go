package queue

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// The endpoint sends the response of the case to the first request of a delivery, and 204 to
// the next request.
func TestEachResponseHasItsOutcome(t *testing.T) {
	t.Parallel()
	type response struct {
		status     int
		retryAfter string
		state      outbox.State
		requests   int
		wait       time.Duration // minimum delay between the first two attempts
	}
	var cases []response
	add := func(state outbox.State, requests int, statuses ...int) {
		for _, s := range statuses {
			cases = append(cases, response{status: s, state: state, requests: requests})
		}
	}
	add(outbox.Delivered, 1, 200, 201, 202, 204, 206, 299)
	add(outbox.Dead, 1, 300, 301, 302, 303, 304, 307, 308)
	add(outbox.Dead, 1, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 451, 499)
	add(outbox.Delivered, 2, 408, 425, 429, 500, 501, 502, 503, 504, 507, 520, 599)
	cases = append(cases,
		response{429, "2", outbox.Delivered, 2, 2 * time.Second},
		response{503, "2", outbox.Delivered, 2, 2 * time.Second},
		response{503, "date", outbox.Delivered, 2, time.Second},
		response{503, "soon", outbox.Delivered, 2, 0},
		response{404, "2", outbox.Dead, 1, 0},
		response{410, "2", outbox.Dead, 1, 0},
	)
	var mu sync.Mutex
	requests := make([]int, len(cases))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		mu.Lock()
		requests[i]++
		isFirst := requests[i] == 1
		mu.Unlock()
		c := cases[i]
		switch {
		case !isFirst:
			c.status = http.StatusNoContent
		case c.retryAfter == "date":
			w.Header().Set("Retry-After", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
		case c.retryAfter != "":
			w.Header().Set("Retry-After", c.retryAfter)
		}
		if c.status >= 300 && c.status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(c.status)
	}))
	t.Cleanup(s.Close)
	r := newRig(t, newBackends(t, redistest.Shared(t).NewDatabase(t)), Options{}, delivery.Schedule{100 * time.Millisecond})
	ds := r.deliveries(len(cases), s.URL)
	want := make(map[outbox.State]int)
	for i := range ds {
		ds[i].Endpoint, ds[i].Request.URL = fmt.Sprintf("e%d", i), fmt.Sprintf("%s/%d", s.URL, i)
		want[cases[i].state]++
	}
	r.send(ds)
	for state, n := range want {
		r.await(state, n)
	}
	for i, c := range cases {
		name := fmt.Sprintf("%d, Retry-After %q", c.status, c.retryAfter)
		got := r.get(ds[i])
		relaytest.Equal(t, name+": the state", got.State, c.state)
		relaytest.Equal(t, name+": attempts and requests", [2]int{len(got.Attempts), requests[i]}, [2]int{c.requests, c.requests})
		if len(got.Attempts) != c.requests {
			continue
		}
		relaytest.Equal(t, name+": the status of the first attempt", got.Attempts[0].Status, c.status)
		if c.wait > 0 && got.Attempts[1].At.Sub(got.Attempts[0].At) < c.wait {
			t.Errorf("%s: retried after %s, want at least %s", name, got.Attempts[1].At.Sub(got.Attempts[0].At), c.wait)
		}
		if c.state == outbox.Dead && !strings.Contains(got.Reason, strconv.Itoa(c.status)) {
			t.Errorf("%s: reason = %q, want it to contain the status", name, got.Reason)
		}
	}
}
