package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer is an answer of a gateway, or the lack of one.
type answer struct {
	request string // method and path
	status  int    // 0: no answer
	body    string // without an answer: the error
}

func (a answer) ok() bool { return a.status >= 200 && a.status <= 299 }

// unavailable reports whether the gateway or a back end is temporarily unavailable: there was no
// answer, or its status says so.
func (a answer) unavailable() bool {
	switch a.status {
	case 0, http.StatusServiceUnavailable, http.StatusFailedDependency, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// notFound reports whether the requested object does not exist.
func (a answer) notFound() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusUnprocessableEntity
}

// gateway returns the next gateway, in turn.
func (s *site) gateway() *gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	return s.gateways[s.turn%len(s.gateways)]
}

// call makes a request with the account's token to the next gateway, once no fault pauses the
// load. headers alternates names and values; it may replace the token.
func (s *site) call(ctx context.Context, method, path, body string, headers ...string) answer {
	s.pausing.RLock()
	defer s.pausing.RUnlock()
	a, _ := request(ctx, s.client, s.gateway(), method, path, body, headers...)
	return a
}

// request makes a request to a gateway. The error is the reason for a missing answer.
func request(ctx context.Context, client *http.Client, g *gateway, method, path, body string, headers ...string) (a answer, err error) {
	a.request = method + " " + path
	defer func() {
		if err != nil {
			a.body = err.Error()
		}
	}()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+g.addr+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("X-Auth-Token", token) // the header of /v2 and /v3
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	a.status, a.body = resp.StatusCode, string(text)
	return a, nil
}

// callOnce makes a request that must not be repeated because the gateway would execute it again.
// It records an unexpected answer, and that the result is uncertain if the gateway was
// unavailable.
func (s *site) callOnce(ctx context.Context, kind, method, path, body string, headers ...string) answer {
	a := s.call(ctx, method, path, body, headers...)
	s.ledger.countAnswer(kind, a)
	if a.unavailable() {
		s.ledger.noAnswer(kind)
	}
	return a
}

// retryEvery is the pause before a request is repeated.
const retryEvery = 200 * time.Millisecond

// repeat makes an idempotent request again until the gateway and its back ends are available, or
// the load ends. repeated reports whether it made more than one request.
func (s *site) repeat(ctx context.Context, kind, method, path, body string, headers ...string) (a answer, repeated bool) {
	for ; ; repeated = true {
		a = s.call(ctx, method, path, body, headers...)
		if !repeated || !a.notFound() { // a deletion whose answer was lost
			s.ledger.countAnswer(kind, a)
		}
		if !a.unavailable() {
			return a, repeated
		}
		select {
		case <-time.After(retryEvery):
		case <-s.done:
			return a, repeated
		case <-ctx.Done():
			return a, repeated
		}
	}
}

// post repeats a POST as repeat does and records an acknowledgement.
func (s *site) post(ctx context.Context, kind, id, path, body string) {
	if a, _ := s.repeat(ctx, kind, http.MethodPost, path, body); a.ok() {
		s.ledger.ack(kind, id, "")
	}
}

// get makes a GET with the account's token and decodes the answer into value.
func (s *site) get(ctx context.Context, path string, value any) error {
	return s.read(s.call(ctx, http.MethodGet, path, ""), value)
}

// admin makes a request with the operator's token and decodes the answer into value unless that
// is nil.
func (s *site) admin(ctx context.Context, method, path, body string, value any) error {
	return s.read(s.call(ctx, method, path, body, "Authorization", "Bearer "+adminToken), value)
}

// read decodes the body of a 2xx answer into value unless that is nil. Other answers are errors.
func (s *site) read(a answer, value any) error {
	if !a.ok() {
		return fmt.Errorf("%s: %d %.300s", a.request, a.status, a.body)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(a.body), value); err != nil {
		return fmt.Errorf("%s: %w in %.300s", a.request, err, a.body)
	}
	return nil
}
