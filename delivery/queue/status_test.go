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
)

// Every answer of an endpoint, from the record through the request to the
// record: first it answers as the case says, then 204.
func TestWhatEachAnswerMakesOfADelivery(t *testing.T) {
	type answer struct {
		status     int
		retryAfter string
		state      outbox.State
		requests   int
		wait       time.Duration // at least, between the first two attempts
	}
	var cases []answer
	add := func(state outbox.State, requests int, statuses ...int) {
		for _, s := range statuses {
			cases = append(cases, answer{status: s, state: state, requests: requests})
		}
	}
	add(outbox.Delivered, 1, 200, 201, 202, 204, 206, 299)
	add(outbox.Dead, 1, 300, 301, 302, 303, 304, 307, 308)
	add(outbox.Dead, 1, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 451, 499)
	add(outbox.Delivered, 2, 408, 425, 429, 500, 501, 502, 503, 504, 507, 520, 599)
	cases = append(cases,
		answer{429, "2", outbox.Delivered, 2, 2 * time.Second},
		answer{503, "2", outbox.Delivered, 2, 2 * time.Second},
		answer{503, "date", outbox.Delivered, 2, time.Second},
		answer{503, "soon", outbox.Delivered, 2, 0},
		answer{404, "2", outbox.Dead, 1, 0},
		answer{410, "2", outbox.Dead, 1, 0},
	)
	var mu sync.Mutex
	came := make([]int, len(cases))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		mu.Lock()
		came[i]++
		first := came[i] == 1
		mu.Unlock()
		c := cases[i]
		switch {
		case !first:
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
	r := newRig(t, onRedis(t, redistest.Start(t).URL), Options{}, delivery.Schedule{100 * time.Millisecond})
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
		if got.State != c.state || len(got.Attempts) != c.requests || came[i] != c.requests || got.Attempts[0].Status != c.status {
			t.Errorf("%s: %s after %d attempts and %d requests: %+v", name, got.State, len(got.Attempts), came[i], got.Attempts)
			continue
		}
		if c.wait > 0 && got.Attempts[1].At.Sub(got.Attempts[0].At) < c.wait {
			t.Errorf("%s: tried again after %s, want %s or more", name, got.Attempts[1].At.Sub(got.Attempts[0].At), c.wait)
		}
		if c.state == outbox.Dead && !strings.Contains(got.Reason, strconv.Itoa(c.status)) {
			t.Errorf("%s: reason %q", name, got.Reason)
		}
	}
}
