package netserver

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// document is a value in a body whose syntax has been checked, usually an object. Its fields
// have paths: "params.radio.freq" is freq within radio within params. The methods that read a
// field note a problem under its path, so that parsers need no error handling: an optional
// field that cannot be read becomes a warning, an essential one refuses the frame. The error
// is the first refusal in the body.
//
// A path may have alternatives, such as "location|position". The last alternative in the body
// is read, except that null is read only if all alternatives are null. Of repeated names, the
// last in the body is read.
//
// A document is valid until the function to which it was passed returns.
type document struct {
	notes   *notes
	members *members
	index   int    // index of the member, or -1 if it is missing
	name    string // path of the document, empty for the body
	alias   string // replaces the path in notes
}

// members are the values of a body, each followed by the fields within it. The items of a
// list are not included: Items adds each item during its visit, so that a long list needs
// little memory. A member has no pointers, which the garbage collector would follow.
type members struct {
	body   []byte
	origin int // offset of body within the post's body, if body is a string in it
	list   []member
	// depth is the depth to which objects are read, limit the largest number of values that are
	// read. Of other values, only the syntax is checked.
	depth, limit int
}

type member struct {
	key, keyEnd int32 // offsets of the key; equal for the body itself and for an item of a list
	start, end  int32 // offsets of the value, without the quotes of a string
	nextIndex   int32 // index of the member after this one and its fields
	kind        jsonbody.Kind
	escaped     bool // the key has escapes
}

// readDocument reads a body. The error is a syntax error.
func readDocument(body []byte) (document, error) {
	return readPart(body, jsonbody.MaxDepth, math.MaxInt)
}

// readPart reads the first values of a body, down to a depth. The error is about the
// syntax of the whole body.
func readPart(body []byte, depth, limit int) (document, error) {
	const usualMembers = 128
	capacity := min(1+bytes.Count(body, []byte(":")), usualMembers, limit) // each field has a colon
	m := &members{body: body, list: make([]member, 0, capacity), depth: depth, limit: limit}
	r := jsonbody.New(body)
	m.add(&r, member{}, 0, depth)
	err := r.Close()
	if e, ok := errors.AsType[*jsonbody.SyntaxError](err); ok {
		err = &decoders.Error{Format: formatJSON, Offset: e.Offset, Reason: e.Reason}
	}
	return document{members: m}, err
}

// add adds the next value of r and, if it is an object, its fields down to a depth. entry has
// the key of the value. base is the offset of the reader's text in the body.
func (m *members) add(r *jsonbody.Reader, entry member, base, depth int) {
	i := len(m.list)
	entry.kind = r.Kind()
	entry.start = int32(base + r.Offset())
	m.list = append(m.list, entry)
	if entry.kind == jsonbody.Object && depth > 0 {
		for name := range r.Fields() {
			if len(m.list) < m.limit {
				start, end := r.Key()
				m.add(r, member{key: int32(base + start), keyEnd: int32(base + end), escaped: len(name) != end-start}, base, depth-1)
			}
		}
	} else {
		r.Skip()
	}
	entry.end = int32(base + r.Offset())
	if entry.kind == jsonbody.String {
		entry.start++
		entry.end = max(entry.start, entry.end-1) // the string may be cut off
	}
	entry.nextIndex = int32(len(m.list))
	m.list[i] = entry
}

func (m *members) text(i int) []byte { return m.body[m.list[i].start:m.list[i].end] }

func (m *members) key(i int) string {
	entry := &m.list[i]
	if entry.escaped {
		return string(jsonbody.Unescape(m.body[entry.key:entry.keyEnd]))
	}
	return string(m.body[entry.key:entry.keyEnd])
}

// find returns the index of the value at a path within a member, or -1 if it is missing.
func (m *members) find(parent int, path string) int {
	end := 0 // of the first name in the path
	for ; end < len(path) && path[end] != '.'; end++ {
		if path[end] == '|' {
			// Return the later alternative, but not null if the other alternative has a value.
			i, j := m.find(parent, path[:end]), m.find(parent, path[end+1:])
			earlier, later := min(i, j), max(i, j)
			if earlier >= 0 && m.list[later].kind == jsonbody.Null && m.list[earlier].kind != jsonbody.Null {
				return earlier
			}
			return later
		}
	}
	name, found := path[:end], -1
	parentEnd := m.list[parent].nextIndex
	for i := parent + 1; i < int(parentEnd); i = int(m.list[i].nextIndex) {
		switch entry := &m.list[i]; {
		case !entry.escaped && string(m.body[entry.key:entry.keyEnd]) != name, entry.escaped && m.key(i) != name:
		case end == len(path):
			found = i
		default:
			found = max(found, m.find(i, path[end+1:]))
		}
	}
	return found
}

// find returns the index of the value at a path, or -1 if it is missing.
func (d *document) find(path string) int {
	if d.index < 0 {
		return -1
	}
	return d.members.find(d.index, path)
}

// fields returns the indexes of the fields in the order of the body.
func (d *document) fields() iter.Seq[int] {
	return func(yield func(int) bool) {
		if d.index < 0 {
			return
		}
		for i := d.index + 1; i < int(d.members.list[d.index].nextIndex) && yield(i); i = int(d.members.list[i].nextIndex) {
			continue
		}
	}
}

// offset returns the offset of the value at a path in the body, or MaxInt if it is missing.
func (d *document) offset(path string) int {
	if i := d.find(path); i >= 0 {
		return d.members.origin + int(d.members.list[i].start)
	}
	return math.MaxInt
}

// field returns the name of a path in notes. It has the alternative that is in the body, or
// the first one.
func (d *document) field(path string) string {
	if d.alias != "" {
		return d.alias
	}
	if strings.Contains(path, "|") {
		nameStart := strings.LastIndexByte(path, '.') + 1
		name, _, _ := strings.Cut(path[nameStart:], "|")
		if i := d.find(path); i >= 0 {
			name = d.members.key(i)
		}
		path = path[:nameStart] + name
	}
	if d.name == "" {
		return path
	}
	return d.name + "." + path
}

// As returns the document with another path for its notes, for a field that is better known
// under another name.
func (d document) As(path string) document {
	d.alias = path
	return d
}

// In returns the value at a path as a document, which has no fields unless it is an object.
func (d document) In(path string) document {
	return document{notes: d.notes, members: d.members, index: d.find(path), name: d.field(path)}
}

// Unwrap makes the fields of some objects, the wrappers, fields of the document.
func (d document) Unwrap(isWrapper func(key string) bool) {
	for i := d.index + 1; i < int(d.members.list[d.index].nextIndex); {
		m := &d.members.list[i]
		nextIndex := int(m.nextIndex)
		if m.kind == jsonbody.Object && isWrapper(d.members.key(i)) {
			m.nextIndex = int32(i + 1)
		}
		i = nextIndex
	}
}

// Unquote returns the value at a path as In does or, if the value is a string, the JSON in
// that string. If the JSON is cut off, its beginning is read.
func (d document) Unquote(path string) document {
	inner := d.In(path)
	if d.Kind(path) != jsonbody.String {
		return inner
	}
	text, _ := readDocument([]byte(inner.Self().String()))
	text.members.origin = d.offset(path)
	inner.members, inner.index = text.members, 0
	return inner
}

// Each visits the items of the list at a path.
func (d document) Each(path string, visit func(item document)) { d.In(path).Items(visit) }

// Items visits the items of the document, if that is a list. An item is valid until visit
// returns.
func (d document) Items(visit func(item document)) {
	if d.kind() != jsonbody.Array {
		return
	}
	m, start := d.members, len(d.members.list)
	base, r := int(m.list[d.index].start), jsonbody.New(m.text(d.index))
	for ok := r.Array(); ok && r.More(); {
		m.add(&r, member{}, base, m.depth)
		visit(document{notes: d.notes, members: m, index: start, name: d.name})
		m.list = m.list[:start]
	}
}

// All visits the fields in the order of the body, each as a value and as a document.
func (d document) All(visit func(key string, v jsonbody.Value, d document)) {
	for i := range d.fields() {
		inner := document{notes: d.notes, members: d.members, index: i, name: d.members.key(i)}
		key := inner.name
		if d.name != "" && d.members.list[i].kind == jsonbody.Object {
			inner.name = d.name + "." + key
		}
		visit(key, inner.Self(), inner)
	}
}

// Keys returns the names of the fields in the order of the body.
func (d document) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range d.fields() {
			if !yield(d.members.key(i)) {
				return
			}
		}
	}
}

// HasFields reports whether the document is an object with fields.
func (d document) HasFields() bool {
	for range d.fields() {
		return true
	}
	return false
}

// Has reports whether there is a field at a path, even if it is null.
func (d document) Has(path string) bool { return d.find(path) >= 0 }

// Kind returns the kind of the value at a path, or Missing.
func (d document) Kind(path string) jsonbody.Kind {
	d.index = d.find(path)
	return d.kind()
}

func (d document) kind() jsonbody.Kind {
	if d.index < 0 {
		return jsonbody.Missing
	}
	return d.members.list[d.index].kind
}

// IsPresent reports whether the value at a path is neither missing nor null.
func (d document) IsPresent(path string) bool { return d.Kind(path) > jsonbody.Null }

// Value returns the value at a path, whose kind may be Missing.
func (d document) Value(path string) jsonbody.Value {
	d.index = d.find(path)
	return d.Self()
}

// Self returns the document as a value.
func (d document) Self() jsonbody.Value {
	if d.index < 0 {
		return jsonbody.Value{}
	}
	return jsonbody.NewValue(d.kind(), d.members.text(d.index))
}
