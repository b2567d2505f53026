package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// caller sends requests with a set of credentials.
type caller struct {
	g      *gateway
	header http.Header
}

// as sends requests with a token; an empty one is none.
func (g *gateway) as(token string) caller {
	c := caller{g, http.Header{}}
	if token != "" {
		c.header.Set("Authorization", "Bearer "+token)
	}
	return c
}

// admin sends requests as the operator.
func (g *gateway) admin() caller { return g.as(adminToken) }

// with sends a further header; an empty value takes it away.
func (c caller) with(name, value string) caller {
	c.header = c.header.Clone()
	if value == "" {
		c.header.Del(name)
	} else {
		c.header.Set(name, value)
	}
	return c
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
	of     string // what it answers
}

// newWeb keeps connections as a network server's client does; a process that
// hangs must not hang the test.
func newWeb() *http.Client {
	return &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// try sends a request; its error means that no answer came.
func (c caller) try(method, path, body string) (answer, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.g.url()+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header = c.header.Clone()
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.g.web.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(got), method + " " + path}, err
}

func (c caller) do(method, path, body string) answer {
	c.g.t.Helper()
	a, err := c.try(method, path, body)
	if err != nil {
		c.g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c caller) get(path string) answer { c.g.t.Helper(); return c.do(http.MethodGet, path, "") }
func (c caller) post(path, body string) answer {
	c.g.t.Helper()
	return c.do(http.MethodPost, path, body)
}
func (c caller) put(path, body string) answer {
	c.g.t.Helper()
	return c.do(http.MethodPut, path, body)
}

// is checks status and body; JSON is compared by value.
func (a answer) is(t testing.TB, status int, body string) {
	t.Helper()
	if a.status != status || !sameBody(a.body, body) {
		t.Errorf("%s: %d %s\nwant %d %s", a.of, a.status, a.body, status, body)
	}
}

func sameBody(got, want string) bool {
	var g, w any
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return got == want
	}
	return reflect.DeepEqual(g, w)
}

// mentions checks the status and that the body holds some words.
func (a answer) mentions(t testing.TB, status int, words ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: %d %s\nwant %d", a.of, a.status, a.body, status)
	}
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			t.Errorf("%s: %d %s\nwant a body that mentions %q", a.of, a.status, a.body, w)
		}
	}
}

// into reads the body of a success.
func (a answer) into(t testing.TB, to any) {
	t.Helper()
	if a.status < 200 || a.status > 299 {
		t.Fatalf("%s: %d %s", a.of, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), to); err != nil {
		t.Fatalf("%s: %v in %s", a.of, err, a.body)
	}
}

// happening is an event as the operator sees it.
type happening struct{ ID, Kind, Source, State, Reason, Raw, Outcome string }

// events lists what a query selects, newest first.
func (g *gateway) events(query string) []happening {
	g.t.Helper()
	var list struct{ Data []happening }
	g.admin().get("/admin/events?"+query).into(g.t, &list)
	return list.Data
}

// settled waits until everything that was accepted is processed.
func (g *gateway) settled() {
	g.t.Helper()
	for _, one := range g.behind {
		one.settled()
	}
	if len(g.behind) > 0 {
		return
	}
	eventually(g.t, "everything accepted is processed", func() (any, bool) {
		m := metrics(g.t, g.as("").get("/metrics").body)
		lag := m[`penstock_lag{kind="uplink"}`] + m[`penstock_lag{kind="sms"}`] + m[`penstock_lag{kind="cdr"}`]
		return lag, lag == 0
	})
}

// parcel is a delivery as the operator sees it.
type parcel struct {
	ID, Kind, Relay, Target, State, Reason string
	MessageID                              string  `json:"message_id"`
	NextAttemptAt                          *string `json:"next_attempt_at"`
	Attempts                               []struct {
		At, Error, Response string
		Status              int
	}
}

// deliveries lists what a query selects.
func (g *gateway) deliveries(query string) []parcel {
	g.t.Helper()
	var list struct{ Data []parcel }
	g.admin().get("/admin/deliveries?"+query).into(g.t, &list)
	return list.Data
}

// reach waits until a relay's only delivery is in a state.
func (g *gateway) reach(relay, state string) parcel {
	g.t.Helper()
	var found []parcel
	eventually(g.t, "the delivery of "+relay+" is "+state, func() (any, bool) {
		found = g.deliveries("relay=" + relay)
		return found, len(found) == 1 && found[0].State == state
	})
	return found[0]
}
