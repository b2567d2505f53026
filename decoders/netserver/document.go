package netserver

import (
	"errors"
	"iter"
	"math"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// document is an object of a body whose syntax has been checked. Its fields are read by their
// paths: "params.radio.freq" is freq within radio within params. A problem is noted under the
// same path, so that a parser needs no error handling of its own: an optional field that
// cannot be read becomes a warning, an essential one refuses the frame, and the first refusal
// in the body is returned.
//
// A path may have alternatives, "location|position". Of these,
// and of a name that the body has twice, the last in the body counts; an
// alternative that is null counts only if all are.
//
// A document is valid until the function that it was given to returns.
type document struct {
	notes   *notes
	members *members
	index   int    // index of the member, or -1
	name    string // its own path, empty for the body
	alias   string // replaces the path in notes
}

// members are the values of a body, each followed by the fields within it. The items of
// lists are not among them: Items adds each while it is visited, so that a long list takes
// little memory. A member holds no pointer, since the garbage collector would follow each.
type members struct {
	body   []byte
	origin int // of a text within the body: where it begins
	list   []member
	// depth and limit are the depth to which objects are read, and the number of values; the
	// others are only checked.
	depth, limit int
}

type member struct {
	key, keyEnd int32 // empty for the body itself and for an item of a list
	start, end  int32 // of the value in the body, without the quotes of a text
	nextN       int32 // the index of the member after those within this one
	kind        jsonbody.Kind
	escaped     bool // the key has escapes
}

// readDocument reads a body. The error is that of its syntax.
func readDocument(body []byte) (document, error) {
	return readPart(body, jsonbody.MaxDepth, math.MaxInt)
}

// readPart reads the first values of a body, down to a depth. The error is that of the
// syntax of the whole.
func readPart(body []byte, depth, limit int) (document, error) {
	const bytesPerMember, usual = 14, 128
	m := &members{body: body, list: make([]member, 0, min(len(body)/bytesPerMember+1, usual)), depth: depth, limit: limit}
	r := jsonbody.New(body)
	m.add(&r, member{}, 0, depth)
	err := r.Close()
	if e, ok := errors.AsType[*jsonbody.SyntaxError](err); ok {
		err = &decoders.Error{Format: formatJSON, Offset: e.Offset, Reason: e.Reason}
	}
	return document{members: m}, err
}

// add adds the next value and, if it is an object, its fields down to a depth; x has its
// key. The reader's text begins at base.
func (m *members) add(r *jsonbody.Reader, x member, base, depth int) {
	i := len(m.list)
	x.kind = r.Kind()
	x.start = int32(base + r.Offset())
	m.list = append(m.list, x)
	if x.kind == jsonbody.Object && depth > 0 {
		for name := range r.Fields() {
			if len(m.list) < m.limit {
				start, end := r.Key()
				m.add(r, member{key: int32(base + start), keyEnd: int32(base + end), escaped: len(name) != end-start}, base, depth-1)
			}
		}
	} else {
		r.Skip()
	}
	x.end = int32(base + r.Offset())
	if x.kind == jsonbody.String {
		x.start++
		x.end = max(x.start, x.end-1) // it may not end
	}
	x.nextN = int32(len(m.list))
	m.list[i] = x
}

// text returns the text of a value, without the quotes of a string.
func (m *members) text(i int) []byte { return m.body[m.list[i].start:m.list[i].end] }

// key returns the key of a member.
func (m *members) key(i int) string {
	x := &m.list[i]
	if x.escaped {
		return string(jsonbody.Unescape(m.body[x.key:x.keyEnd]))
	}
	return string(m.body[x.key:x.keyEnd])
}

// find returns the index of the value at a path within a member, the last of several;
// -1 if there is none.
func (m *members) find(parent int, path string) int {
	end := 0 // of the first name
	for ; end < len(path) && path[end] != '.'; end++ {
		if path[end] == '|' {
			// Take the later of the two, but not one that is null if the other has a value.
			i, j := m.find(parent, path[:end]), m.find(parent, path[end+1:])
			first, last := min(i, j), max(i, j)
			if first >= 0 && m.list[last].kind == jsonbody.Null && m.list[first].kind != jsonbody.Null {
				return first
			}
			return last
		}
	}
	name, found := path[:end], -1
	lastN := m.list[parent].nextN
	for i := parent + 1; i < int(lastN); i = int(m.list[i].nextN) {
		switch x := &m.list[i]; {
		case !x.escaped && string(m.body[x.key:x.keyEnd]) != name, x.escaped && m.key(i) != name:
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

// fields visits the indexes of the fields in the order of the body.
func (d *document) fields() iter.Seq[int] {
	return func(yield func(int) bool) {
		if d.index < 0 {
			return
		}
		for i := d.index + 1; i < int(d.members.list[d.index].nextN) && yield(i); i = int(d.members.list[i].nextN) {
			continue
		}
	}
}

// at returns where the value at a path begins, the end of everything for one
// that is missing.
func (d *document) at(path string) int {
	if i := d.find(path); i >= 0 {
		return d.members.origin + int(d.members.list[i].start)
	}
	return math.MaxInt
}

// field is the name of a path in notes. Of alternatives it is the one in the body.
func (d *document) field(path string) string {
	if d.alias != "" {
		return d.alias
	}
	if strings.Contains(path, "|") {
		i, nameStart := d.find(path), strings.LastIndexByte(path, '.')+1
		stem := path[:nameStart]
		name, _, _ := strings.Cut(path[nameStart:], "|")
		if i >= 0 {
			name = d.members.key(i)
		}
		path = stem + name
	}
	if d.name == "" {
		return path
	}
	return d.name + "." + path
}

// As has the notes about what is read next name another path, where the usual
// name of a field is better known than the one in the body.
func (d document) As(path string) document {
	d.alias = path
	return d
}

// In returns the value at a path, whose fields have paths of their own within it. Only
// an object has fields.
func (d document) In(path string) document {
	return document{notes: d.notes, members: d.members, index: d.find(path), name: d.field(path)}
}

// Unwrap makes the fields of the objects with some names fields of the document.
func (d document) Unwrap(isWrapper func(key string) bool) {
	for i := d.index + 1; i < int(d.members.list[d.index].nextN); {
		m := &d.members.list[i]
		nextIndex := int(m.nextN)
		if m.kind == jsonbody.Object && isWrapper(d.members.key(i)) {
			m.nextN = int32(i + 1)
		}
		i = nextIndex
	}
}

// Unquote returns the value at a path as In does or, where a text stands there, the JSON in
// that text. Of JSON that is cut off, the beginning is read.
func (d document) Unquote(path string) document {
	in := d.In(path)
	if d.Kind(path) != jsonbody.String {
		return in
	}
	text, _ := readDocument([]byte(in.Self().String()))
	text.members.origin = d.at(path)
	in.members, in.index = text.members, 0
	return in
}

// Each visits the items of the list at a path. Only those that are objects have fields.
func (d document) Each(path string, visit func(item document)) { d.In(path).Items(visit) }

// Items visits the items of the list that the document is. An item is valid until visit
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

// All visits the fields in the order of the body, each with its value and as a document.
func (d document) All(visit func(key string, v jsonbody.Value, d document)) {
	for i := range d.fields() {
		in := document{notes: d.notes, members: d.members, index: i, name: d.members.key(i)}
		key := in.name
		if d.name != "" && d.members.list[i].kind == jsonbody.Object {
			in.name = d.name + "." + key
		}
		visit(key, in.Self(), in)
	}
}

// Keys are the names of the fields in the order of the body.
func (d document) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range d.fields() {
			if !yield(d.members.key(i)) {
				return
			}
		}
	}
}

// Has reports whether there is a field at a path, be it null.
func (d document) Has(path string) bool { return d.find(path) >= 0 }

// Kind returns the kind of the value at a path, Missing where there is none.
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

// Value returns the value at a path, a Missing one where there is none.
func (d document) Value(path string) jsonbody.Value {
	d.index = d.find(path)
	return d.Self()
}

// Self returns the value that the document is.
func (d document) Self() jsonbody.Value {
	if d.index < 0 {
		return jsonbody.Value{}
	}
	return jsonbody.NewValue(d.kind(), d.members.text(d.index))
}
