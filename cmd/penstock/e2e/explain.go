package e2e

import (
	"fmt"
	"strings"
)

// Explanation is an answer of the explain interface.
type Explanation struct {
	State, Reason, Outcome string
	Joined                 *struct {
		Part, Total int
		Missing     []int
	}
	Matched    *struct{ Kind, ID, Why, Action string }
	Considered []struct{ Kind, ID, Why string }
	Requests   []struct {
		Method, URL, Body, Refused string
		Headers                    map[string]string
		Mail                       *struct{ To, Subject, Text string }
	}
}

// Explain posts a message to the operator's explain interface.
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
