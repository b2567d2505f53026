package cdr

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// maxErrors is the largest number of errors that are returned for a post.
const maxErrors = 20

// Source returns the format of a post of calls: freeswitch, asterisk or json.
func Source(body []byte) string {
	body = unwrapForm(body)
	if !isJSON(body) {
		return "asterisk"
	}
	var head struct{ Variables, Callflow json.RawMessage }
	if json.NewDecoder(bytes.NewReader(body)).Decode(&head) == nil && (head.Variables != nil || head.Callflow != nil) {
		return "freeswitch"
	}
	return "json"
}

// Parse parses the call records in a post. The notes are about fields that are not used,
// and the errors, at most 20, about invalid records. The valid records are returned in any
// case.
func Parse(body []byte) ([]Call, decoders.Notes, []error) {
	return read(unwrapForm(body), parseCallObject, parseAsteriskLines)
}

// readObject parses a record in JSON and notes the fields that are not used.
type readObject[T any] func(raw json.RawMessage, offset int, notes *decoders.Notes) (T, error)

// read parses records in JSON with object, and in other formats with lines.
func read[T any](body []byte, object readObject[T], lines func(*records[T])) ([]T, decoders.Notes, []error) {
	r := records[T]{body: body}
	switch {
	case len(body) == 0:
		r.fail(newError("cdr", "body", 0, "is empty"))
	case isJSON(body):
		r.json(object)
	default:
		lines(&r)
	}
	return r.list, r.notes, r.errs
}

// unwrapForm returns the body, or the form field cdr if there is one, without surrounding blanks.
func unwrapForm(body []byte) []byte {
	body = trimBody(body)
	form, ok := bytes.CutPrefix(body, []byte("cdr="))
	if !ok {
		return body
	}
	text := string(form)
	if value, _, _ := strings.Cut(text, "&"); strings.HasPrefix(value, "%7B") || strings.HasPrefix(value, "%7b") {
		text = value
	}
	if decoded, err := url.QueryUnescape(text); err == nil && !strings.HasPrefix(text, "{") {
		text = decoded
	}
	return bytes.TrimSpace([]byte(text))
}

// trimBody returns the body without a byte order mark and surrounding blanks.
func trimBody(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
}

func isJSON(body []byte) bool { return len(body) > 0 && (body[0] == '{' || body[0] == '[') }

// records collects the records of a post.
type records[T any] struct {
	body  []byte
	list  []T
	notes decoders.Notes
	errs  []error
}

func (r *records[T]) fail(err error) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, err)
	}
}

func (r *records[T]) add(record T, err error) {
	if err != nil {
		r.fail(err)
		return
	}
	r.list = append(r.list, record)
}

// json parses objects one after another, or in arrays. After invalid JSON it continues with the
// next line, unless there are maxErrors errors.
func (r *records[T]) json(object readObject[T]) {
	start, d := 0, json.NewDecoder(bytes.NewReader(r.body))
	for {
		offset := start + int(d.InputOffset())
		offset += len(r.body[offset:]) - len(bytes.TrimLeft(r.body[offset:], " \t\r\n"))
		if offset == len(r.body) {
			return
		}
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == nil {
			var items []json.RawMessage
			if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
				items = []json.RawMessage{raw}
			}
			for _, item := range items {
				r.add(object(item, offset, &r.notes))
			}
			continue
		}
		reason := "is not valid JSON"
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			reason = s.Error()
		}
		r.fail(newError("json", "body", offset, reason))
		length := bytes.IndexByte(r.body[offset:], '\n')
		if length < 0 || len(r.errs) == maxErrors {
			return
		}
		start = offset + length + 1
		d = json.NewDecoder(bytes.NewReader(r.body[start:]))
	}
}

// parseCallObject parses a call of FreeSWITCH or in the gateway's own format.
func parseCallObject(raw json.RawMessage, offset int, notes *decoders.Notes) (Call, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return Call{}, newError("json", "record", offset, "is not an object")
	}
	if fields["variables"] != nil || fields["callflow"] != nil {
		return parseFreeSWITCH(raw, offset, notes)
	}
	return parseGeneric(fields, offset, notes)
}
