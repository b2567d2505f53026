package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// SignedBy reports whether a request has the signature of Standard Webhooks for a secret in base64.
func SignedBy(req SinkRequest, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", req.Header.Get("Webhook-Id"), req.Header.Get("Webhook-Timestamp"), req.Body)
	return req.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// AttemptStatuses returns the statuses of a delivery's attempts, separated by spaces.
func AttemptStatuses(delivery Delivery) string {
	var list []string
	for _, a := range delivery.Attempts {
		list = append(list, fmt.Sprint(a.Status))
	}
	return strings.Join(list, " ")
}

// SinkRequest is a request that a customer's endpoint received.
type SinkRequest struct {
	Method, Path string
	Query, Form  url.Values
	Header       http.Header
	Body         string
}

// Sink is a customer's endpoint. It records requests and answers 200 by default.
type Sink struct {
	URL      string
	mu       sync.Mutex
	requests []SinkRequest
	answer   func(w http.ResponseWriter, req SinkRequest, requests int)
}

// NewSink starts a sink. answer writes the answer to a request and may be nil; requests is the
// number of earlier requests for the same path.
func NewSink(t *testing.T, answer func(w http.ResponseWriter, req SinkRequest, requests int)) *Sink {
	t.Helper()
	sink := &Sink{answer: answer}
	sink.URL = NewServer(t, sink)
	return sink
}

// NewServer serves HTTP until the test ends and returns its URL.
func NewServer(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := SinkRequest{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Header: r.Header, Body: string(body)}
	req.Form, _ = url.ParseQuery(req.Body)
	s.mu.Lock()
	requests := 0
	for _, earlier := range s.requests {
		if earlier.Path == req.Path {
			requests++
		}
	}
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, req, requests)
	}
}

// Requests returns the requests for a path so far.
func (s *Sink) Requests(path string) []SinkRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(req SinkRequest) bool { return req.Path != path })
}

// Await waits for the n-th request for a path and returns it.
func (s *Sink) Await(t *testing.T, path string, n int) SinkRequest {
	t.Helper()
	var got []SinkRequest
	relaytest.Eventually(t, fmt.Sprintf("request %d for %s", n, path), func() (any, bool) {
		got = s.Requests(path)
		return got, len(got) >= n
	})
	return got[n-1]
}

// SameValues fails the test unless each parameter has the wanted value.
func SameValues(t *testing.T, got url.Values, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s = %q, want %q", name, got.Get(name), value)
		}
	}
}

// RuleNotice is the default body of a rule's http_post action.
type RuleNotice struct {
	Rule     struct{ ID, Name string }
	AlarmID  string `json:"alarm_id"`
	State    string
	Device   struct{ ID, Identifier string }
	Time     string
	Readings map[string]struct {
		Value float64
		Units string
	}
}
