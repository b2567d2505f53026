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

// Exchange is a request and its answer as sent. The request's body has no Content-Encoding.
type Exchange struct {
	Method      string
	Target      string // path and query
	Request     http.Header
	RequestBody []byte
	Status      int
	Answer      http.Header
	AnswerBody  []byte
}

// Checker compares exchanges with a document and records the documented answers that occurred. It
// is not safe for concurrent use.
type Checker struct {
	doc  *openapi3.T
	seen map[string]bool // "operationId status"

	examples Examples
	presence map[*openapi3.Schema]*presence
}

// New returns a Checker of a document.
func New(doc *openapi3.T) *Checker {
	return &Checker{doc: doc, seen: make(map[string]bool), examples: Examples{}, presence: make(map[*openapi3.Schema]*presence)}
}

// Open returns a Checker of a contract. It ends the test if the contract cannot be read.
func Open(t testing.TB, contract []byte) *Checker {
	t.Helper()
	return New(relaytest.Must(openapi.Load(contract))(t))
}

// Send sends a request and returns the status and the body of the answer. It reports every
// difference between the exchange and the document with t.Error.
func (c *Checker) Send(t testing.TB, app *fiber.App, r *http.Request) (status int, body string) {
	t.Helper()
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	status, body, header := answertest.Send(t, app, r)
	for _, difference := range c.Check(Exchange{
		Method: r.Method, Target: r.RequestURI, Request: r.Header, RequestBody: sent, Status: status, Answer: header, AnswerBody: []byte(body),
	}) {
		t.Error(difference)
	}
	return status, body
}

// Check returns the differences between an exchange and the document. It compares the request only
// if the request succeeded, because the document must describe all parameters that a handler
// accepts.
func (c *Checker) Check(x Exchange) []string {
	u, err := url.ParseRequestURI(x.Target)
	if err != nil {
		return []string{err.Error()}
	}
	op := c.operation(x.Method, u.Path)
	path := x.Method + " " + x.Target + ": " + strconv.Itoa(x.Status)
	if op == nil {
		return []string{path + ": no such operation"}
	}
	ref := op.Responses.Value(strconv.Itoa(x.Status))
	if ref == nil {
		return []string{fmt.Sprintf("%s: the status is not documented; the body: %s", path, x.AnswerBody)}
	}
	c.seen[op.OperationID+" "+strconv.Itoa(x.Status)] = true
	faults := checkHeaders(ref.Value, x.Answer)
	faults = append(faults, checkBody("the answer", ref.Value.Content, x.Answer, x.AnswerBody, openapi3.VisitAsResponse())...)
	if x.Status < 300 {
		faults = append(faults, checkQuery(op, u.Query())...)
		if op.RequestBody != nil && len(x.RequestBody) > 0 {
			faults = append(faults, checkBody("the request", op.RequestBody.Value.Content, x.Request, x.RequestBody, openapi3.VisitAsRequest())...)
		} else if len(x.RequestBody) > 0 {
			faults = append(faults, "the request has a body that is not documented")
		}
	}
	if len(faults) == 0 {
		c.addExample(op.OperationID, strconv.Itoa(x.Status), x)
		c.countAnswer(op.OperationID+" "+strconv.Itoa(x.Status), ref.Value.Content["application/json"], x.AnswerBody)
	}
	for i := range faults {
		faults[i] = path + ": " + faults[i]
	}
	return faults
}

// Uncovered returns the documented answers that occurred in no exchange, as "operationId status".
func (c *Checker) Uncovered() []string {
	var faults []string
	for _, item := range c.doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if name := op.OperationID + " " + status; !c.seen[name] {
					faults = append(faults, name)
				}
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// operation returns the operation whose template matches a path; if several match, the template with the
// most literal segments. It returns nil if none matches.
func (c *Checker) operation(method, path string) *openapi3.Operation {
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

// matches reports whether a template matches a path, and returns the number of literal segments.
func matches(template string, wildcard bool, path string) (literal int, ok bool) {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if wildcard && len(have) > len(want) {
		lastIndex := len(want) - 1
		have = append(have[:lastIndex:lastIndex], strings.Join(have[lastIndex:], "/"))
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

// commonHeaders returns the headers that every answer may have.
func commonHeaders() []string {
	return []string{"Cache-Control", "Content-Length", "Content-Type", "Date", "Strict-Transport-Security", "X-Content-Type-Options", "X-Request-Id"}
}

func checkHeaders(r *openapi3.Response, got http.Header) []string {
	var faults []string
	for name := range got {
		if _, documented := r.Headers[name]; !documented && !slices.Contains(commonHeaders(), name) {
			faults = append(faults, "the header "+name+" is not documented")
		}
	}
	for name, ref := range r.Headers {
		text := got.Get(name)
		if text == "" {
			if ref.Value.Required {
				faults = append(faults, "the header "+name+" is missing")
			}
			continue
		}
		faults = append(faults, checkText("the header "+name, ref.Value.Schema, text)...)
	}
	slices.Sort(faults)
	return faults
}

// checkQuery compares the query parameters of a request with the documented parameters.
func checkQuery(op *openapi3.Operation, got url.Values) []string {
	var faults []string
	for name, values := range got {
		p := op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name)
		if p == nil {
			faults = append(faults, "the parameter "+name+" is not documented")
			continue
		}
		faults = append(faults, checkText("the parameter "+name, p.Schema, values[0])...)
	}
	for _, ref := range op.Parameters {
		if p := ref.Value; p.In == openapi3.ParameterInQuery && p.Required && !got.Has(p.Name) {
			faults = append(faults, "the parameter "+p.Name+" is required")
		}
	}
	slices.Sort(faults)
	return faults
}

// checkText compares a string with a schema. It parses the string if the schema requires a number or a
// boolean.
func checkText(label string, ref *openapi3.SchemaRef, text string) []string {
	var v any = text
	if t := ref.Value.Type; t.Is("integer") || t.Is("number") || t.Is("boolean") {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return []string{label + ": " + err.Error()}
		}
	}
	return checkValue(label, ref, v)
}

// checkBody compares a body with the documented schema of its media type.
func checkBody(label string, documented openapi3.Content, h http.Header, body []byte, as openapi3.SchemaValidationOption) []string {
	if len(documented) == 0 {
		if len(body) > 0 {
			return []string{fmt.Sprintf("%s should have no body and has %q", label, body)}
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	media := documented[kind]
	if err != nil && len(body) == 0 {
		media = documented["text/plain"]
	}
	if media == nil {
		return []string{fmt.Sprintf("%s is of the type %q, which is not documented", label, h.Get("Content-Type"))}
	}
	var v any = string(body)
	switch {
	case kind == "application/x-www-form-urlencoded":
		return checkForm(label, media.Schema, string(body))
	case kind == "application/json":
		if err := json.Unmarshal(body, &v); err != nil {
			return []string{fmt.Sprintf("%s is not valid JSON: %q", label, body)}
		}
	case kind != "" && !strings.HasPrefix(kind, "text/"):
		return nil // the handler's own tests check other types, such as YAML
	}
	return checkValue(label, media.Schema, v, as)
}

// checkForm compares the fields of a form with the properties of a schema.
func checkForm(label string, ref *openapi3.SchemaRef, body string) []string {
	fields, err := url.ParseQuery(body)
	if err != nil {
		return []string{label + ": " + err.Error()}
	}
	var faults []string
	for name, values := range fields {
		if property := ref.Value.Properties[name]; property != nil {
			faults = append(faults, checkText(label+"'s "+name, property, values[0])...)
		} else {
			faults = append(faults, label+"'s "+name+" is not documented")
		}
	}
	slices.Sort(faults)
	return faults
}

// checkValue compares a value with a schema.
func checkValue(label string, ref *openapi3.SchemaRef, v any, options ...openapi3.SchemaValidationOption) []string {
	options = append(options, openapi3.MultiErrors(), openapi3.EnableFormatValidation())
	if err := ref.Value.VisitJSON(v, options...); err != nil {
		text, _ := json.Marshal(v)
		return []string{fmt.Sprintf("%s: %s: %s", label, text, firstLines(err))}
	}
	return nil
}

// firstLines returns the text of an error without the schema that the error prints.
func firstLines(err error) string {
	var faults []string
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "Error at") || strings.Contains(line, "property") {
			faults = append(faults, strings.TrimSpace(line))
		}
	}
	if len(faults) == 0 {
		return err.Error()
	}
	return strings.Join(faults, "; ")
}
