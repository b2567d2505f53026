package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// Client sends requests with a set of credentials.
type Client struct {
	Gateway *Gateway
	header  http.Header
}

// As sends requests with a token; an empty one is none.
func (g *Gateway) As(token string) Client {
	c := Client{g, http.Header{}}
	if token != "" {
		c.header.Set("Authorization", "Bearer "+token)
	}
	return c
}

// Admin sends requests as the operator.
func (g *Gateway) Admin() Client { return g.As(AdminToken) }

// With sends a further header; an empty value takes it away.
func (c Client) With(name, value string) Client {
	c.header = c.header.Clone()
	if value == "" {
		c.header.Del(name)
	} else {
		c.header.Set(name, value)
	}
	return c
}

// Response is a response.
type Response struct {
	Status  int
	Header  http.Header
	Body    string
	Request string // what it answers
}

// newHTTPClient keeps connections as a network server's client does; a process that
// hangs must not hang the test.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Try sends a request; its error means that no answer came.
func (c Client) Try(method, path, body string) (Response, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.Gateway.URL()+path, strings.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	req.Header = c.header.Clone()
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Gateway.HTTP.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return Response{resp.StatusCode, resp.Header, string(got), method + " " + path}, err
}

func (c Client) Do(method, path, body string) Response {
	c.Gateway.T.Helper()
	a, err := c.Try(method, path, body)
	if err != nil {
		c.Gateway.T.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c Client) Get(path string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodGet, path, "")
}

func (c Client) Post(path, body string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodPost, path, body)
}

func (c Client) Put(path, body string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodPut, path, body)
}

// Is checks status and body; JSON is compared by value.
func (a Response) Is(t testing.TB, status int, body string) {
	t.Helper()
	if a.Status != status || !SameBody(a.Body, body) {
		t.Errorf("%s: %d %s\nwant %d %s", a.Request, a.Status, a.Body, status, body)
	}
}

func SameBody(got, want string) bool {
	var g, w any
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return got == want
	}
	return reflect.DeepEqual(g, w)
}

// Mentions checks the status and that the body holds some words.
func (a Response) Mentions(t testing.TB, status int, words ...string) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%s: %d %s\nwant %d", a.Request, a.Status, a.Body, status)
	}
	for _, w := range words {
		if !strings.Contains(a.Body, w) {
			t.Errorf("%s: %d %s\nwant a body that mentions %q", a.Request, a.Status, a.Body, w)
		}
	}
}

// Decode reads the body of a success.
func (a Response) Decode(t testing.TB, to any) {
	t.Helper()
	if a.Status < 200 || a.Status > 299 {
		t.Fatalf("%s: %d %s", a.Request, a.Status, a.Body)
	}
	if err := json.Unmarshal([]byte(a.Body), to); err != nil {
		t.Fatalf("%s: %v in %s", a.Request, err, a.Body)
	}
}

// Event is an event as the operator sees it.
type Event struct{ ID, Kind, Source, State, Reason, Raw, Outcome string }

// Events lists what a query selects, newest first.
func (g *Gateway) Events(query string) []Event {
	g.T.Helper()
	var list struct{ Data []Event }
	g.Admin().Get("/admin/events?"+query).Decode(g.T, &list)
	return list.Data
}

// AwaitProcessed waits until everything that was accepted is processed.
func (g *Gateway) AwaitProcessed() {
	g.T.Helper()
	for _, one := range g.Members {
		one.AwaitProcessed()
	}
	if len(g.Members) > 0 {
		return
	}
	relaytest.Eventually(g.T, "everything accepted is processed", func() (any, bool) {
		m := Metrics(g.T, g.As("").Get("/metrics").Body)
		lag := m[`penstock_lag{kind="uplink"}`] + m[`penstock_lag{kind="sms"}`] + m[`penstock_lag{kind="cdr"}`]
		return lag, lag == 0
	})
}

// Delivery is a delivery as the operator sees it.
type Delivery struct {
	ID, Kind, Relay, Target, State, Reason string
	MessageID                              string  `json:"message_id"`
	NextAttemptAt                          *string `json:"next_attempt_at"`
	Attempts                               []struct {
		At, Error, Response string
		Status              int
	}
}

// Deliveries lists what a query selects.
func (g *Gateway) Deliveries(query string) []Delivery {
	g.T.Helper()
	var list struct{ Data []Delivery }
	g.Admin().Get("/admin/deliveries?"+query).Decode(g.T, &list)
	return list.Data
}

// AwaitDelivery waits until a relay's only delivery is in a state.
func (g *Gateway) AwaitDelivery(relay, state string) Delivery {
	g.T.Helper()
	var found []Delivery
	relaytest.Eventually(g.T, "the delivery of "+relay+" is "+state, func() (any, bool) {
		found = g.Deliveries("relay=" + relay)
		return found, len(found) == 1 && found[0].State == state
	})
	return found[0]
}

// CustomerOf sends requests of acme to a gateway, as the SIM and message interfaces
// want it.
func CustomerOf(g *Gateway) Client { return g.Cellular("acme-all-0123456") }

// CarrierOf sends requests of a carrier or network server of acme.
func CarrierOf(g *Gateway) Client { return g.As("acme-all-0123456") }
