package cdr

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// maxErrors is the number of mistakes of a post that are reported.
const maxErrors = 20

// Source names the kind of switch by the shape of a post: freeswitch, asterisk
// or json.
func Source(body []byte) string {
	body = content(body)
	if !isJSON(body) {
		return "asterisk"
	}
	var head struct{ Variables, Callflow json.RawMessage }
	if json.NewDecoder(bytes.NewReader(body)).Decode(&head) == nil && (head.Variables != nil || head.Callflow != nil) {
		return "freeswitch"
	}
	return "json"
}

// Parse reads every record of a call of a post. Notes say what of the records was not
// used. Errors are of the records that cannot be read, at most 20; the others are
// returned.
func Parse(body []byte) ([]Call, decoders.Notes, []error) {
	return read(content(body), object, asteriskLines)
}

// readObject reads a record in JSON, and notes what of it is not used.
type readObject[T any] func(raw json.RawMessage, offset int, notes *decoders.Notes) (T, error)

// read reads records in JSON by object, and others by lines.
func read[T any](body []byte, object readObject[T], lines func(*records[T])) ([]T, decoders.Notes, []error) {
	r := records[T]{body: body}
	switch {
	case len(body) == 0:
		r.fail(reject("cdr", "body", 0, "is empty"))
	case isJSON(body):
		r.json(object)
	default:
		lines(&r)
	}
	return r.found, r.notes, r.errs
}

// content is the body without blanks around it, and out of its form field.
func content(body []byte) []byte {
	body = stripped(body)
	form, ok := bytes.CutPrefix(body, []byte("cdr="))
	if !ok {
		return body
	}
	text := string(form)
	if value, _, _ := strings.Cut(text, "&"); strings.HasPrefix(value, "%7B") || strings.HasPrefix(value, "%7b") {
		text = value
	}
	if plain, err := url.QueryUnescape(text); err == nil && !strings.HasPrefix(text, "{") {
		text = plain
	}
	return bytes.TrimSpace([]byte(text))
}

// stripped is the body without a byte order mark and blanks around it.
func stripped(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
}

func isJSON(body []byte) bool { return len(body) > 0 && (body[0] == '{' || body[0] == '[') }

// records gathers what is read of a post.
type records[T any] struct {
	body  []byte
	found []T
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
	r.found = append(r.found, record)
}

// json reads objects one after another, or in an array. After one that is broken it continues
// with the next line, until too many are.
func (r *records[T]) json(object readObject[T]) {
	begin, d := 0, json.NewDecoder(bytes.NewReader(r.body))
	for {
		offset := begin + int(d.InputOffset())
		offset += len(r.body[offset:]) - len(bytes.TrimLeft(r.body[offset:], " \t\r\n"))
		if offset == len(r.body) {
			return
		}
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == nil {
			r.value(raw, offset, object)
			continue
		}
		reason := "is not valid JSON"
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			reason = s.Error()
		}
		r.fail(reject("json", "body", offset, reason))
		length := bytes.IndexByte(r.body[offset:], '\n')
		if length < 0 || len(r.errs) == maxErrors {
			return
		}
		begin = offset + length + 1
		d = json.NewDecoder(bytes.NewReader(r.body[begin:]))
	}
}

// value reads an object, or each of an array.
func (r *records[T]) value(raw json.RawMessage, offset int, object readObject[T]) {
	var many []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &many) != nil {
		many = []json.RawMessage{raw}
	}
	for _, item := range many {
		r.add(object(item, offset, &r.notes))
	}
}

// object reads a FreeSWITCH call or a generic record.
func object(raw json.RawMessage, offset int, notes *decoders.Notes) (Call, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return Call{}, reject("json", "record", offset, "is not an object")
	}
	if fields["variables"] != nil || fields["callflow"] != nil {
		return freeSWITCH(raw, offset, notes)
	}
	return generic(fields, offset, notes)
}
