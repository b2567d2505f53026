package carrier

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// notMessage is the error for a post that is not a message but is acknowledged; the text
// says what it is.
type notMessage string

// Error describes the post.
func (n notMessage) Error() string { return string(n) }

// receiptOf returns the error for the post of a delivery receipt.
func receiptOf(id, status string) error {
	return notMessage(strings.ToValidUTF8("a delivery receipt: "+clipValue(id)+" is "+clipValue(status), "\uFFFD"))
}

func clipValue(s string) string { return decoders.Clip(s, 80) }

// object is the fields of a post: those of its JSON body, its form, or its query.
type object map[string]any

// fieldsOf returns the fields of a post. A form's fields override the query's.
func fieldsOf(e *intake.Entry) (object, error) {
	if len(e.Body) == 0 || isForm(e.ContentType) {
		raw := e.Query
		if len(e.Body) > 0 {
			raw = string(e.Body) + "&" + e.Query
		}
		return queryObject(raw)
	}
	return jsonObject(e.Body)
}

// queryObject parses a query, of a name its first value; the error names the field query.
func queryObject(raw string) (object, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, relay.Problems{"query": {"The query is not URL-encoded."}}.Err()
	}
	o := make(object, len(q))
	for name := range q {
		o[name] = q.Get(name)
	}
	return o, nil
}

// jsonObject parses a body that is one JSON object.
func jsonObject(body []byte) (object, error) {
	o, err := params.Object(bytes.TrimPrefix(body, []byte("\ufeff")))
	if errors.Is(err, params.ErrNotObject) {
		return nil, relay.Problems{"body": {err.Error()}}.Err()
	}
	return o, err
}

// get returns a field as a form reads it; a boolean as text.
func (o object) get(name string) (any, bool) {
	v, present := o[name]
	if b, ok := v.(bool); ok {
		return strconv.FormatBool(b), true
	}
	return v, present
}

// text returns a text or a number; empty for other fields.
func (o object) text(name string) string {
	v, _ := o.get(name)
	text, _ := textOf(v)
	return text
}

// has reports whether a field is given and not null.
func (o object) has(name string) bool { return o[name] != nil }

// object returns a field that is an object; nil for other fields.
func (o object) object(name string) object {
	inner, _ := o[name].(map[string]any)
	return inner
}

// list returns the objects of a field that is a list.
func (o object) list(name string) []object {
	values, _ := o[name].([]any)
	objects := make([]object, len(values))
	for i, v := range values {
		objects[i], _ = v.(map[string]any)
	}
	return objects
}

// first returns the first of some fields that is not empty.
func (o object) first(names ...string) string {
	for _, n := range names {
		if s := o.text(n); s != "" {
			return s
		}
	}
	return ""
}

// setSentAt sets the time of sending from a field. A message is not refused for its date:
// a time that cannot be read is noted.
func setSentAt(m *inbound.Message, field, text string, parse func(string) time.Time) {
	if m.SentAt = parse(text); text != "" && m.SentAt.IsZero() {
		m.Notes.Add(fmt.Sprintf("%s: the time %.40q was not understood; the message has no time of sending", field, text))
	}
}

// when parses a time in the formats of carriers; without a zone it is UTC. It returns the
// zero time if the text is none.
func when(s string) time.Time {
	if t, ok := iso8601.Parse(s); ok {
		return t
	}
	for _, layout := range []string{time.RFC1123Z, time.RFC1123} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return kannelTime(s)
}
