package contracttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/relay/relaytest"
)

// Exchange is a request and its answer as they went over the wire, the request's
// body without its Content-Encoding.
type Exchange struct {
	Method      string
	Target      string // path and query
	Request     http.Header
	RequestBody []byte
	Status      int
	Answer      http.Header
	AnswerBody  []byte
}

// Checker compares exchanges with a document and remembers which answers it has
// seen. It is for one goroutine.
type Checker struct {
	doc  *openapi3.T
	seen map[string]bool // "operationId status"

	examples Examples
	present  map[*openapi3.Schema]*presence
}

// New returns a Checker over a document.
func New(doc *openapi3.T) *Checker {
	return &Checker{doc: doc, seen: make(map[string]bool), examples: Examples{}, present: make(map[*openapi3.Schema]*presence)}
}

// Open returns a Checker over a contract; it ends the test if that cannot be read.
func Open(t testing.TB, contract []byte) *Checker {
	t.Helper()
	return New(relaytest.Must(openapi.Load(contract))(t))
}

// Ask makes a request and returns status and body of the answer. It fails the test, and
// lets it go on, for every way in which they differ from the document.
func (c *Checker) Ask(t testing.TB, app *fiber.App, r *http.Request) (status int, body string) {
	t.Helper()
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	status, body, header := answertest.Ask(t, app, r)
	for _, difference := range c.Check(Exchange{
		Method: r.Method, Target: r.RequestURI, Request: r.Header, RequestBody: sent, Status: status, Answer: header, AnswerBody: []byte(body),
	}) {
		t.Error(difference)
	}
	return status, body
}

// Check returns how an exchange differs from the document. The request is
// compared too when it succeeded: what a handler takes has to be written down.
func (c *Checker) Check(x Exchange) []string {
	u, err := url.ParseRequestURI(x.Target)
	if err != nil {
		return []string{err.Error()}
	}
	op := c.find(x.Method, u.Path)
	at := x.Method + " " + x.Target + ": " + strconv.Itoa(x.Status)
	if op == nil {
		return []string{at + ": no such operation"}
	}
	ref := op.Responses.Value(strconv.Itoa(x.Status))
	if ref == nil {
		return []string{fmt.Sprintf("%s: the status is not documented; the body: %s", at, x.AnswerBody)}
	}
	c.seen[op.OperationID+" "+strconv.Itoa(x.Status)] = true
	out := headers(ref.Value, x.Answer)
	out = append(out, content("the answer", ref.Value.Content, x.Answer, x.AnswerBody, openapi3.VisitAsResponse())...)
	if x.Status < 300 {
		out = append(out, query(op, u.Query())...)
		if op.RequestBody != nil && len(x.RequestBody) > 0 {
			out = append(out, content("the request", op.RequestBody.Value.Content, x.Request, x.RequestBody, openapi3.VisitAsRequest())...)
		} else if len(x.RequestBody) > 0 {
			out = append(out, "the request has a body that is not documented")
		}
	}
	if len(out) == 0 {
		c.remember(op.OperationID, strconv.Itoa(x.Status), x)
		c.noteAnswer(op.OperationID+" "+strconv.Itoa(x.Status), ref.Value.Content["application/json"], x.AnswerBody)
	}
	for i := range out {
		out[i] = at + ": " + out[i]
	}
	return out
}

// Unseen returns the documented answers that no exchange had, as
// "operationId status".
func (c *Checker) Unseen() []string {
	var out []string
	for _, item := range c.doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if name := op.OperationID + " " + status; !c.seen[name] {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// find returns the operation of a path; the one that names most of it wins.
func (c *Checker) find(method, path string) *openapi3.Operation {
	var found *openapi3.Operation
	best := -1
	for template, item := range c.doc.Paths.Map() {
		op := item.Operations()[method]
		if literal, ok := matches(template, wildcard(item), path); ok && op != nil && literal > best {
			found, best = op, literal
		}
	}
	return found
}

// matches reports whether a template stands for a path, and how many segments it
// names.
func matches(template string, rest bool, path string) (literal int, ok bool) {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if rest && len(have) > len(want) {
		last := len(want) - 1
		have = append(have[:last:last], strings.Join(have[last:], "/"))
	}
	if len(want) != len(have) {
		return 0, false
	}
	for i, segment := range want {
		switch {
		case segment == have[i]:
			literal++
		case !isParameter(segment) || have[i] == "":
			return 0, false
		}
	}
	return literal, true
}

// ours are headers that every answer may have.
func ours() []string {
	return []string{"Cache-Control", "Content-Length", "Content-Type", "Date", "Strict-Transport-Security", "X-Content-Type-Options", "X-Request-Id"}
}

func headers(r *openapi3.Response, got http.Header) []string {
	var out []string
	for name := range got {
		if _, documented := r.Headers[name]; !documented && !slices.Contains(ours(), name) {
			out = append(out, "the header "+name+" is not documented")
		}
	}
	for name, ref := range r.Headers {
		text := got.Get(name)
		if text == "" {
			if ref.Value.Required {
				out = append(out, "the header "+name+" is missing")
			}
			continue
		}
		out = append(out, value("the header "+name, ref.Value.Schema, text)...)
	}
	slices.Sort(out)
	return out
}

// query compares the parameters that a request has with those documented.
func query(op *openapi3.Operation, got url.Values) []string {
	var out []string
	for name, values := range got {
		p := op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name)
		if p == nil {
			out = append(out, "the parameter "+name+" is not documented")
			continue
		}
		out = append(out, value("the parameter "+name, p.Schema, values[0])...)
	}
	for _, ref := range op.Parameters {
		if p := ref.Value; p.In == openapi3.ParameterInQuery && p.Required && !got.Has(p.Name) {
			out = append(out, "the parameter "+p.Name+" is required")
		}
	}
	slices.Sort(out)
	return out
}

// value compares a text of the wire with a schema that may want a number or a
// truth of it.
func value(what string, ref *openapi3.SchemaRef, text string) []string {
	var v any = text
	if t := ref.Value.Type; t.Is("integer") || t.Is("number") || t.Is("boolean") {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return []string{what + ": " + err.Error()}
		}
	}
	return visit(what, ref, v)
}

// content compares a body with what is documented of its type.
func content(what string, documented openapi3.Content, h http.Header, body []byte, as openapi3.SchemaValidationOption) []string {
	if len(documented) == 0 {
		if len(body) > 0 {
			return []string{fmt.Sprintf("%s should have no body and has %q", what, body)}
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	media := documented[kind]
	if err != nil && len(body) == 0 {
		media = documented["text/plain"]
	}
	if media == nil {
		return []string{fmt.Sprintf("%s is of the type %q, which is not documented", what, h.Get("Content-Type"))}
	}
	var v any = string(body)
	switch {
	case kind == "application/x-www-form-urlencoded":
		return form(what, media.Schema, string(body))
	case kind == "application/json":
		if err := json.Unmarshal(body, &v); err != nil {
			return []string{fmt.Sprintf("%s is no JSON: %q", what, body)}
		}
	case kind != "" && !strings.HasPrefix(kind, "text/"):
		return nil // YAML: the handler's own tests
	}
	return visit(what, media.Schema, v, as)
}

// form compares the fields of a form with the properties of a schema.
func form(what string, ref *openapi3.SchemaRef, body string) []string {
	fields, err := url.ParseQuery(body)
	if err != nil {
		return []string{what + ": " + err.Error()}
	}
	var out []string
	for name, values := range fields {
		if property := ref.Value.Properties[name]; property != nil {
			out = append(out, value(what+"'s "+name, property, values[0])...)
		} else {
			out = append(out, what+"'s "+name+" is not documented")
		}
	}
	slices.Sort(out)
	return out
}

// visit compares a value with a schema.
func visit(what string, ref *openapi3.SchemaRef, v any, options ...openapi3.SchemaValidationOption) []string {
	options = append(options, openapi3.MultiErrors(), openapi3.EnableFormatValidation())
	if err := ref.Value.VisitJSON(v, options...); err != nil {
		text, _ := json.Marshal(v)
		return []string{fmt.Sprintf("%s: %s: %s", what, text, firstLines(err))}
	}
	return nil
}

// firstLines is an error without the schema that it prints at length.
func firstLines(err error) string {
	var out []string
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "Error at") || strings.Contains(line, "property") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	if len(out) == 0 {
		return err.Error()
	}
	return strings.Join(out, "; ")
}
