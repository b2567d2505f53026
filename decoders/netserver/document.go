package netserver

import (
	"iter"
	"math"
	"strings"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// document is an object of a body whose syntax has been checked. Its fields
// are read by their paths: "params.radio.freq" is freq within radio within
// params. A problem is noted under the same path, so that a parser needs no
// error handling of its own: an optional field that cannot be read becomes a
// warning, an essential one refuses the frame, and the first refusal in the
// body is the one that is returned.
//
// The last name of a path may have alternatives, "location|position". Of these,
// and of a name that the body has twice, the last in the body counts.
//
// A document is valid until the function that it was given to returns.
type document struct {
	notes    *notes
	members  *members
	from, to int    // its fields are members[from:to]
	name     string // its own path, empty for the body
	alias    string // replaces the path in notes
}

// members are the fields of a body's objects, each followed by those within it.
// A member holds no pointer, since the garbage collector would follow each.
type members struct {
	body   []byte
	origin int      // of a text within the body: where it begins
	keys   []string // those that are no part of the body, as they have escapes
	list   []member
}

type member struct {
	key, keyEnd int32 // in the body, or keyEnd is -1 and key an index of keys
	at, end     int32 // the value in the body, with the white space before it
	next        int32 // the member after those within this one
	kind        jsonbody.Kind
	hash        byte // of the key, so that few others have to be compared
}

// keyHash differs between most keys of a body.
func keyHash[T string | []byte](key T) byte {
	if len(key) == 0 {
		return 0
	}
	return key[0] ^ key[len(key)-1]<<3 ^ byte(len(key))<<5
}

// read adds the fields of the next value, which has none unless it is an
// object. The reader's text begins at base.
func (m *members) read(r *jsonbody.Reader, base int) {
	for key := range r.Fields() {
		m.add(r, key, base)
	}
}

// add adds the next value as a field.
func (m *members) add(r *jsonbody.Reader, key []byte, base int) {
	i, x := len(m.list), member{at: int32(base + r.Offset()), kind: r.Kind(), hash: keyHash(key)}
	x.key, x.keyEnd = m.place(key)
	m.list = append(m.list, x)
	m.read(r, base)
	m.list[i].end, m.list[i].next = int32(base+r.Offset()), int32(len(m.list))
}

// place finds a key in the body. What the reader has cut out of it reaches to
// the end of the same array, so the capacities tell where it begins.
func (m *members) place(key []byte) (at, end int32) {
	i := cap(m.body) - cap(key)
	if i >= 0 && i < len(m.body) && len(key) > 0 && &m.body[i] == &key[0] {
		return int32(i), int32(i + len(key))
	}
	m.keys = append(m.keys, string(key))
	return int32(len(m.keys) - 1), -1
}

func (m *members) key(i int) string {
	x := &m.list[i]
	if x.keyEnd < 0 {
		return m.keys[x.key]
	}
	return string(m.body[x.key:x.keyEnd])
}

func (m *members) isNamed(i int, name string) bool {
	x := &m.list[i]
	if x.keyEnd < 0 {
		return m.keys[x.key] == name
	}
	return string(m.body[x.key:x.keyEnd]) == name
}

// reader stands before the value of a member.
func (m *members) reader(i int) jsonbody.Reader {
	return jsonbody.New(m.body[m.list[i].at:m.list[i].end])
}

// find returns the member at a path, the last of several, among those from one
// up to another, -1 if there is none.
func (m *members) find(from, to int, path string) int {
	end := 0 // of the first name
	for ; end < len(path) && path[end] != '.'; end++ {
		if path[end] == '|' {
			return max(m.find(from, to, path[:end]), m.find(from, to, path[end+1:]))
		}
	}
	name, found := path[:end], -1
	mark := keyHash(name)
	for i := from; i < to; i = int(m.list[i].next) {
		switch {
		case m.list[i].hash != mark || !m.isNamed(i, name):
		case end == len(path):
			found = i
		default:
			found = max(found, m.find(i+1, int(m.list[i].next), path[end+1:]))
		}
	}
	return found
}

func (d *document) find(path string) int { return d.members.find(d.from, d.to, path) }

// within returns the object that member i is, or a document without fields.
func (d document) within(i int) document {
	d.from, d.to = i+1, int(d.members.list[i].next)
	return d
}

// at returns where the value at a path begins, the end of everything for one
// that is missing.
func (d *document) at(path string) int {
	if i := d.find(path); i >= 0 {
		return d.members.origin + int(d.members.list[i].at)
	}
	return math.MaxInt
}

// field is the name of a path in notes. Of alternatives it is the one that the
// body has.
func (d *document) field(path string) string {
	if d.alias != "" {
		return d.alias
	}
	if strings.Contains(path, "|") {
		path = d.chosen(path)
	}
	if d.name == "" {
		return path
	}
	return d.name + "." + path
}

func (d *document) chosen(path string) string {
	stem, names := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		stem, names = path[:i+1], path[i+1:]
	}
	if i := d.find(path); i >= 0 {
		return stem + d.members.key(i)
	}
	first, _, _ := strings.Cut(names, "|")
	return stem + first
}

// As has the notes about what is read next name another path, where the usual
// name of a field is better known than the one in the body.
func (d document) As(path string) document {
	d.alias = path
	return d
}

// In returns the object at a path, whose fields have paths of their own within
// it. Where there is none it has no fields.
func (d document) In(path string) document {
	name := d.field(path)
	i := d.find(path)
	if i < 0 {
		return document{notes: d.notes, members: d.members, name: name}
	}
	in := d.within(i)
	in.name, in.alias = name, ""
	return in
}

// Unwrap makes the fields of the objects with some names fields of the document.
func (d document) Unwrap(isWrapper func(key string) bool) {
	for i := d.from; i < d.to; {
		m := &d.members.list[i]
		next := int(m.next)
		if m.kind == jsonbody.Object && isWrapper(d.members.key(i)) {
			m.next = int32(i + 1)
		}
		i = next
	}
}

// Unquote returns the document itself or, where a text stands at the path, one
// in which the path leads to the JSON in that text. Of JSON that is cut off, the
// beginning is read.
func (d document) Unquote(path string) document {
	if d.Kind(path) != jsonbody.String {
		return d
	}
	own := &members{body: []byte(d.Value(path).String()), origin: d.at(path)}
	r := jsonbody.New(own.body)
	own.add(&r, []byte(d.members.key(d.find(path))), 0)
	d.members, d.from, d.to = own, 0, len(own.list)
	return d
}

// Each visits the items of the list at a path, of which those that are no
// objects have no fields.
func (d document) Each(path string, visit func(item document)) {
	i := d.find(path)
	if i < 0 || d.members.list[i].kind != jsonbody.Array {
		return
	}
	own := &members{body: d.members.body, origin: d.members.origin, list: make([]member, 0, 8)}
	item := document{notes: d.notes, members: own, name: d.field(path)}
	at, r := int(d.members.list[i].at), d.members.reader(i)
	for ok := r.Array(); ok && r.More(); {
		own.list, own.keys = own.list[:0], nil
		own.read(&r, at)
		item.to = len(own.list)
		visit(item)
	}
}

// All visits the fields in the order of the body, each with its value and, if
// that is an object, the document that it is.
func (d document) All(visit func(key string, v jsonbody.Value, in document)) {
	for i := d.from; i < d.to; i = int(d.members.list[i].next) {
		key, r := d.members.key(i), d.members.reader(i)
		in := d.within(i)
		in.name, in.alias = key, ""
		if d.name != "" && d.members.list[i].kind == jsonbody.Object {
			in.name = d.name + "." + key
		}
		visit(key, r.Value(), in)
	}
}

// Keys are the names of the fields in the order of the body.
func (d document) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := d.from; i < d.to && yield(d.members.key(i)); i = int(d.members.list[i].next) {
			continue
		}
	}
}

// Has reports whether there is a field at a path, be it null.
func (d document) Has(path string) bool { return d.find(path) >= 0 }

// Kind returns the kind of the value at a path, Missing where there is none.
func (d document) Kind(path string) jsonbody.Kind {
	if i := d.find(path); i >= 0 {
		return d.members.list[i].kind
	}
	return jsonbody.Missing
}

// IsPresent reports whether the value at a path is neither missing nor null.
func (d document) IsPresent(path string) bool { return d.Kind(path) > jsonbody.Null }

// Value returns the value at a path, a Missing one where there is none.
func (d document) Value(path string) jsonbody.Value {
	i := d.find(path)
	if i < 0 {
		return jsonbody.Value{}
	}
	r := d.members.reader(i)
	return r.Value()
}

// Span returns the text of the value at a path, with the white space before it.
func (d document) Span(path string) []byte {
	i := d.find(path)
	if i < 0 {
		return nil
	}
	return d.members.body[d.members.list[i].at:d.members.list[i].end]
}
