package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// Client sends requests with a set of credentials.
type Client struct {
	Gateway *Gateway
	header  http.Header
}

// WithToken returns a client that sends a bearer token. With an empty token it sends no Authorization header.
func (g *Gateway) WithToken(token string) Client {
	c := Client{g, http.Header{}}
	if token != "" {
		c.header.Set("Authorization", "Bearer "+token)
	}
	return c
}

// XAuth returns a client that sends a token in X-Auth-Token, the header of REST v2 and v3.
func (g *Gateway) XAuth(token string) Client { return g.WithToken("").With("X-Auth-Token", token) }

// Admin returns a client with the admin token.
func (g *Gateway) Admin() Client { return g.WithToken(AdminToken) }

// With returns a client that sends an additional header. An empty value removes the header.
func (c Client) With(name, value string) Client {
	c.header = c.header.Clone()
	if value == "" {
		c.header.Del(name)
	} else {
		c.header.Set(name, value)
	}
	return c
}

// Response is the answer to a request.
type Response struct {
	Status  int
	Header  http.Header
	Body    string
	Request string // method and path of the request
}

// newHTTPClient returns a client that keeps connections open, as a network server does, and
// does not follow redirects. Its timeout ends a test whose gateway hangs.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout:       relaytest.Patience,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Try sends a request. An error means that there was no complete answer.
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

// Do sends a request and ends the test if there is no answer.
func (c Client) Do(method, path, body string) Response {
	c.Gateway.T.Helper()
	resp, err := c.Try(method, path, body)
	if err != nil {
		c.Gateway.T.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

// Get sends a GET request.
func (c Client) Get(path string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodGet, path, "")
}

// Post sends a POST request. The body is JSON unless the client sets a Content-Type.
func (c Client) Post(path, body string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodPost, path, body)
}

// Put sends a PUT request. The body is JSON unless the client sets a Content-Type.
func (c Client) Put(path, body string) Response {
	c.Gateway.T.Helper()
	return c.Do(http.MethodPut, path, body)
}

// Expect checks the status, and the body with SameBody.
func (r Response) Expect(t testing.TB, status int, body string) {
	t.Helper()
	if r.Status != status || !SameBody(r.Body, body) {
		t.Errorf("%s: %d %s\nwant %d %s", r.Request, r.Status, r.Body, status, body)
	}
}

// SameBody reports whether two bodies are equal. If both are JSON, it compares their values.
func SameBody(got, want string) bool {
	var g, w any
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return got == want
	}
	return reflect.DeepEqual(g, w)
}

// Mentions checks the status and that the body contains all words.
func (r Response) Mentions(t testing.TB, status int, words ...string) {
	t.Helper()
	if r.Status != status {
		t.Errorf("%s: %d %s\nwant %d", r.Request, r.Status, r.Body, status)
	}
	for _, w := range words {
		if !strings.Contains(r.Body, w) {
			t.Errorf("%s: %d %s\nwant a body that mentions %q", r.Request, r.Status, r.Body, w)
		}
	}
}

// Decode decodes the JSON of a 2xx answer. Any other status ends the test.
func (r Response) Decode(t testing.TB, target any) {
	t.Helper()
	if r.Status < 200 || r.Status > 299 {
		t.Fatalf("%s: %d %s\nwant 2xx", r.Request, r.Status, r.Body)
	}
	if err := json.Unmarshal([]byte(r.Body), target); err != nil {
		t.Fatalf("%s: %v in %s", r.Request, err, r.Body)
	}
}

// Create posts a body and returns the id in the answer.
func (c Client) Create(path, body string) string {
	c.Gateway.T.Helper()
	var created struct{ Data struct{ ID string } }
	resp := c.Post(path, body)
	if resp.Decode(c.Gateway.T, &created); created.Data.ID == "" {
		c.Gateway.T.Fatalf("%s: no id in %s", resp.Request, resp.Body)
	}
	return created.Data.ID
}

// CreateFrom encodes a body as JSON, posts it and returns the id in the answer.
func (c Client) CreateFrom(path string, body any) string {
	c.Gateway.T.Helper()
	return c.Create(path, string(relaytest.Must(json.Marshal(body))(c.Gateway.T)))
}

// List reads all pages of a list that is paged by cursor. path must contain a query.
func List[T any](c Client, path string) (records []T) {
	c.Gateway.T.Helper()
	for cursor := ""; ; {
		var page struct {
			Data []T
			Meta struct{ Next string }
		}
		c.Get(path+cursor).Decode(c.Gateway.T, &page)
		records = append(records, page.Data...)
		if page.Meta.Next == "" {
			return records
		}
		cursor = "&cursor=" + page.Meta.Next
	}
}

// ListNumbered reads all pages of a list that is paged by number. It checks the total if the
// answer has one.
func ListNumbered[T any](c Client, path string) (records []T) {
	c.Gateway.T.Helper()
	for number := 1; ; number++ {
		var page struct {
			Data []T
			Meta struct{ Total *int }
		}
		c.Get(fmt.Sprintf("%s?per_page=500&page=%d", path, number)).Decode(c.Gateway.T, &page)
		records = append(records, page.Data...)
		if len(page.Data) > 0 {
			continue
		}
		if total := page.Meta.Total; total != nil && *total != len(records) {
			c.Gateway.T.Errorf("%s: meta.total = %d, want %d, the number of entries", path, *total, len(records))
		}
		return records
	}
}

// Event is an event as the admin API lists it.
type Event struct{ ID, Kind, Source, State, Reason, Raw, Outcome string }

// Events lists the events that a query of the admin API selects, newest first.
func (g *Gateway) Events(query string) []Event {
	g.T.Helper()
	var list struct{ Data []Event }
	g.Admin().Get("/admin/events?"+query).Decode(g.T, &list)
	return list.Data
}

// AwaitProcessed waits until the gateways have processed all uplinks, messages and call records.
func (g *Gateway) AwaitProcessed() {
	g.T.Helper()
	for _, gateway := range g.Members {
		gateway.AwaitProcessed()
	}
	if len(g.Members) > 0 {
		return
	}
	relaytest.Eventually(g.T, "all uplinks, messages and call records are processed", func() (any, bool) {
		text := g.WithToken("").Get("/metrics").Body
		var lag []string
		for _, kind := range []string{"uplink", "sms", "cdr"} {
			if metric := `penstock_entries_pending{kind="` + kind + `"} `; !strings.Contains(text, metric+"0\n") {
				_, remaining, _ := strings.Cut(text, metric)
				value, _, _ := strings.Cut(remaining, "\n")
				lag = append(lag, metric+value)
			}
		}
		return lag, len(lag) == 0
	})
}

// Delivery is a delivery as the admin API lists it.
type Delivery struct {
	ID, Kind, Relay, Target, State, Reason string
	MessageID                              string  `json:"message_id"`
	NextAttemptAt                          *string `json:"next_attempt_at"`
	Attempts                               []struct {
		At, Error, Response string
		Status              int
	}
}

// Deliveries lists the deliveries that a query of the admin API selects.
func (g *Gateway) Deliveries(query string) []Delivery {
	g.T.Helper()
	var list struct{ Data []Delivery }
	g.Admin().Get("/admin/deliveries?"+query).Decode(g.T, &list)
	return list.Data
}

// AwaitDelivery waits until a relay has exactly one delivery and it is in a state.
func (g *Gateway) AwaitDelivery(relay, state string) Delivery {
	g.T.Helper()
	var found []Delivery
	relaytest.Eventually(g.T, "the delivery of "+relay+" is "+state, func() (any, bool) {
		found = g.Deliveries("relay=" + relay)
		return found, len(found) == 1 && found[0].State == state
	})
	return found[0]
}

// CustomerOf returns a client that sends the token of acme as the REST v2 and v3 interfaces expect it.
func CustomerOf(g *Gateway) Client { return g.XAuth("acme-all-0123456") }

// CarrierOf returns a client that sends the token of acme as a carrier or a network server does.
func CarrierOf(g *Gateway) Client { return g.WithToken("acme-all-0123456") }
