package contracttest

import (
	"encoding/json"
	"mime"
	"net/http"
)

// Examples has observed bodies that match the document, by operationId.
type Examples map[string]*Example

// Example is an observed request of one operation with its answer.
type Example struct {
	// Requests holds a body for each media type.
	Requests map[string]any `json:"requests,omitempty"`
	// Answers holds, for each status, a body for each media type.
	Answers map[string]map[string]any `json:"answers,omitempty"`
}

const (
	maxExampleBytes    = 16 << 10 // of a body; a longer body is not an example
	maxExampleElements = 3        // of a list in an example
)

// Examples returns, for each operation, status and media type, the first body in which Check found
// no difference.
func (c *Checker) Examples() Examples { return c.examples }

func (c *Checker) addExample(operation, status string, x Exchange) {
	e := c.examples[operation]
	if e == nil {
		e = &Example{Requests: map[string]any{}, Answers: map[string]map[string]any{}}
		c.examples[operation] = e
	}
	if x.Status < 300 {
		addBody(e.Requests, x.Request, x.RequestBody)
	}
	if e.Answers[status] == nil {
		e.Answers[status] = map[string]any{}
	}
	addBody(e.Answers[status], x.Answer, x.AnswerBody)
	if len(e.Answers[status]) == 0 {
		delete(e.Answers, status)
	}
}

// addBody adds a body as an example. It ignores a body that is empty or too long, that is not text, or
// whose media type has an example already.
func addBody(stored map[string]any, h http.Header, body []byte) {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || len(body) == 0 || len(body) > maxExampleBytes || stored[kind] != nil {
		return
	}
	var v any
	switch kind {
	case "application/json":
		if json.Unmarshal(body, &v) == nil {
			stored[kind] = shorten(v)
		}
	case "text/plain", "text/xml", "application/soap+xml":
		stored[kind] = string(body)
	}
}

// shorten cuts the lists in a value.
func shorten(v any) any {
	switch v := v.(type) {
	case []any:
		v = v[:min(len(v), maxExampleElements)]
		for i := range v {
			v[i] = shorten(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = shorten(v[key])
		}
	}
	return v
}
