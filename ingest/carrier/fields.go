package carrier

import (
	"bytes"
	"cmp"
	"encoding/json"
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

// notMessage is the error of a valid post that is not a message. The post is journalled and
// acknowledged like a message, so that the carrier does not repeat it. The text describes the
// post.
type notMessage string

func (n notMessage) Error() string { return string(n) }

// receiptNotice returns the notMessage for a delivery receipt.
func receiptNotice(id, status string) error {
	return notMessage(strings.ToValidUTF8("a delivery receipt: "+clipValue(id)+" is "+clipValue(status), "\uFFFD"))
}

func clipValue(s string) string { return decoders.Clip(s, 80) }

// object has the fields of a post, from its JSON body, its form or its query.
type object map[string]any

// fieldsOf returns the fields of a post. The fields of a form override those of the query.
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

// queryObject parses a query and keeps the first value of each name. The error names the field
// query.
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

func jsonObject(body []byte) (object, error) {
	o, err := params.Object(bytes.TrimPrefix(body, []byte("\ufeff")))
	if errors.Is(err, params.ErrNotObject) {
		return nil, relay.Problems{"body": {err.Error()}}.Err()
	}
	return o, err
}

// textOf returns a string, the digits of a number, a boolean as text, or "" for nil. ok is false for
// other values.
func textOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// text returns a field as text, or "" if it is missing, a list or an object.
func (o object) text(name string) string {
	text, _ := textOf(o[name])
	return text
}

// has reports whether a field exists and is not null.
func (o object) has(name string) bool { return o[name] != nil }

// child returns a field that is an object, or nil for other fields.
func (o object) child(name string) object {
	child, _ := o[name].(map[string]any)
	return child
}

func (o object) list(name string) []object {
	values, _ := o[name].([]any)
	objects := make([]object, len(values))
	for i, v := range values {
		objects[i], _ = v.(map[string]any)
	}
	return objects
}

// first returns the first nonempty text of several fields.
func (o object) first(names ...string) (text string) {
	for _, name := range names {
		text = cmp.Or(text, o.text(name))
	}
	return text
}

// setSentAt sets the time of sending from a field. It adds a note if the time is invalid.
func setSentAt(m *inbound.Message, field, text string, parse func(string) time.Time) {
	if m.SentAt = parse(text); text != "" && m.SentAt.IsZero() {
		m.Notes.Add(fmt.Sprintf("%s: the time %.40q is invalid; the message has no time of sending", field, text))
	}
}

// parseTime parses a time in the formats of carriers. The default zone is UTC. It returns the zero
// time if the text is invalid.
func parseTime(s string) time.Time {
	if t, ok := iso8601.Parse(s); ok {
		return t
	}
	for _, layout := range []string{time.RFC1123Z, time.RFC1123} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return parseKannelTime(s)
}
