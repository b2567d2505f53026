package e2e

import (
	"fmt"
	"strings"
)

// ApplyResult is the answer to PUT /admin/inventory.
type ApplyResult struct {
	Data struct {
		Accounts []struct {
			ID   int64
			Name string
		}
		Removed, Kept []string
	}
}

// Apply applies an inventory and returns the answer. query is empty or begins with "?".
func (g *Gateway) Apply(query, document string) ApplyResult {
	g.T.Helper()
	var result ApplyResult
	g.Admin().Put("/admin/inventory"+query, document).Decode(g.T, &result)
	return result
}

// UserPassword is the password of every user of the tests.
const UserPassword = "correct horse battery"

// AddUser adds a user. account is a JSON value, or empty for a user without an account.
func (g *Gateway) AddUser(name, role, account string) {
	g.T.Helper()
	body := fmt.Sprintf(`{"name":%q,"role":%q,"password":%q}`, name, role, UserPassword)
	if account != "" {
		body = strings.TrimSuffix(body, "}") + `,"account":` + account + "}"
	}
	g.Admin().Post("/admin/users", body).Mentions(g.T, 201, `"name":"`+name+`"`)
}

// SignedIn returns a client with a session of a user. It signs each user in once.
func (g *Gateway) SignedIn(name string) Client {
	g.T.Helper()
	if c, ok := g.Sessions.Load(name); ok {
		return c.(Client)
	}
	c := g.SignIn(name)
	g.Sessions.Store(name, c)
	return c
}

// SignIn signs a user in and returns a client with the session.
func (g *Gateway) SignIn(name string) Client {
	g.T.Helper()
	resp := g.WithToken("").Post("/admin/session", fmt.Sprintf(`{"name":%q,"password":%q}`, name, UserPassword))
	var session struct {
		Data struct {
			CSRF string `json:"csrf_token"`
		}
	}
	resp.Decode(g.T, &session)
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if resp.Status != 200 || cookie == "" || session.Data.CSRF == "" {
		g.T.Fatalf("signing %s in: %d %s", name, resp.Status, resp.Body)
	}
	return g.WithToken("").With("Cookie", cookie).With("X-CSRF-Token", session.Data.CSRF)
}

// Explanation is the answer of POST /admin/relays/explain.
type Explanation struct {
	State, Reason, Outcome string
	Joined                 *struct {
		Part, Total int
		Missing     []int
	}
	Matched    *ConsideredRelay
	Considered []ConsideredRelay
	Requests   []struct {
		Method, URL, Body, Refused string
		Headers                    map[string]string
		Mail                       *struct{ To, Subject, Text string }
	}
}

// ConsideredRelay is a relay of an Explanation, with the reason for its match or mismatch.
type ConsideredRelay struct {
	Kind, ID, Action string
	Reason           string `json:"why"`
}

// Explain posts a message to /admin/relays/explain and returns the explanation.
func (g *Gateway) Explain(body string) (e Explanation) {
	g.T.Helper()
	g.Admin().Post("/admin/relays/explain", body).Decode(g.T, &e)
	return e
}

// tracedEvent is an event with its trace.
type tracedEvent struct {
	Data struct {
		ID, State  string
		Trace      []struct{ Step, Message, Text string }
		Deliveries []Delivery
	}
}

// Trace returns the steps and deliveries of an event as text.
func (g *Gateway) Trace(id string) string {
	g.T.Helper()
	var e tracedEvent
	g.Admin().Get("/admin/events/"+id).Decode(g.T, &e)
	var b strings.Builder
	for _, s := range e.Data.Trace {
		fmt.Fprintf(&b, "%s %s: %s\n", s.Step, strings.TrimPrefix(s.Message, id), s.Text)
	}
	fmt.Fprintf(&b, "%d deliveries", len(e.Data.Deliveries))
	return b.String()
}
