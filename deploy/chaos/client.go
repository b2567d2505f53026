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

// answer is the answer of a gateway.
type answer struct {
	request string // the request
	status  int
	body    string
}

func (a answer) done() bool { return a.status >= 200 && a.status <= 299 }

// unavailable reports whether the gateway, or a back end of it, is unavailable for now:
// there was no answer, or one that says so.
func (a answer) unavailable() bool {
	switch a.status {
	case 0, http.StatusServiceUnavailable, http.StatusFailedDependency, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// gone reports whether the answer is that there is no such thing.
func (a answer) gone() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusUnprocessableEntity
}

// gateway is the one for the next request.
func (s *site) gateway() *gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	return s.gateways[s.turn%len(s.gateways)]
}

// call makes a request of the account; headers are names and values in turns. The
// status is 0 if there was no answer.
func (s *site) call(ctx context.Context, method, path, body string, headers ...string) answer {
	s.pausing.RLock()
	defer s.pausing.RUnlock()
	a, _ := ask(ctx, s.client, s.gateway(), method, path, body, headers...)
	return a
}

// ask makes a request of a gateway. The error is why there was no answer.
func ask(ctx context.Context, client *http.Client, g *gateway, method, path, body string, headers ...string) (a answer, err error) {
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
	req.Header.Set("X-Auth-Token", token) // what /v2 and /v3 ask for
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

// callOnce makes a request that a second one would do twice, and notes an answer that
// nothing explains, or a lost one.
func (s *site) callOnce(ctx context.Context, kind, method, path, body string, headers ...string) answer {
	a := s.call(ctx, method, path, body, headers...)
	s.ledger.judge(kind, a)
	if a.unavailable() {
		s.ledger.noAnswer(kind)
	}
	return a
}

// retryEvery is the pause of a sender that got no answer.
const retryEvery = 200 * time.Millisecond

// repeat repeats a request that may come twice until the answer is not that
// something is away, or the load ends.
func (s *site) repeat(ctx context.Context, kind, method, path, body string, headers ...string) (a answer, repeated bool) {
	for ; ; repeated = true {
		a = s.call(ctx, method, path, body, headers...)
		if !repeated || !a.gone() { // what was deleted, and its answer lost, is not there again
			s.ledger.judge(kind, a)
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

// post sends something until it is acknowledged.
func (s *site) post(ctx context.Context, kind, id, path, body string) {
	if a, _ := s.repeat(ctx, kind, http.MethodPost, path, body); a.done() {
		s.ledger.ack(kind, id, "")
	}
}

// load reads an answer of the account into a value.
func (s *site) load(ctx context.Context, path string, into any) error {
	return s.read(s.call(ctx, http.MethodGet, path, ""), into)
}

// admin makes a request of the operator.
func (s *site) admin(ctx context.Context, method, path, body string, into any) error {
	return s.read(s.call(ctx, method, path, body, "Authorization", "Bearer "+adminToken), into)
}

func (s *site) read(a answer, into any) error {
	if !a.done() {
		return fmt.Errorf("%s: %d %.300s", a.request, a.status, a.body)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		return fmt.Errorf("%s: %w in %.300s", a.request, err, a.body)
	}
	return nil
}
