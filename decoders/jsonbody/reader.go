// Package jsonbody reads a JSON text (RFC 8259) once, from start to end. It is for
// parsers that must be fast and must not refuse a message because of an optional field.
//
// It is strict about syntax and tolerant about types: a value of an unexpected kind is
// skipped and reported as absent. Of duplicate keys the last one counts, keys are
// case-sensitive, and invalid UTF-8 becomes U+FFFD. It refuses nesting deeper than MaxDepth. It
// uses no reflection, so a hostile body can cause neither unlimited recursion nor
// allocations beyond the requested values.
//
// It imports no other package of the program: a decoder that reports a SyntaxError
// returns it as a decoders.Error.
package jsonbody

import (
	"bytes"
	"iter"
	"strconv"
)

// MaxDepth is the largest depth of nested arrays and objects.
const MaxDepth = 64

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of values. Missing is the kind of the zero Value.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Reader reads a JSON text. After the first syntax error every method returns its zero
// result, and Close returns the error.
//
//	for key := range r.Fields() {
//		switch string(key) {
//		case "name":
//			name, _ = r.Value().Text()
//		}
//	}
//
// A value that is not read before the next key or item is skipped.
type Reader struct {
	b       []byte
	i       int
	depth   int
	isFirst bool // the next member is the first of its container, so no comma precedes it
	unread  bool // the value after Next or More has not been read
	key     int  // offset of the key that Next read last, after its quote
	keyEnd  int
	err     error
}

// New returns a reader of body, which it neither modifies nor copies. It skips a byte
// order mark.
func New(body []byte) Reader {
	r := Reader{b: body}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		r.i = 3
	}
	return r
}

// Close returns the first syntax error, a *SyntaxError. Text after the value is an error,
// except white space.
func (r *Reader) Close() error {
	if r.peek() != 0 || r.i < len(r.b) {
		r.fail("unexpected text after the value")
	}
	return r.err
}

// Offset returns the number of bytes that have been read.
func (r *Reader) Offset() int { return r.i }

// Key returns the offsets of the key that was read last, without its
// quotes and with its escapes.
func (r *Reader) Key() (start, end int) { return r.key, r.keyEnd }

// Kind returns the kind of the next value without reading it.
func (r *Reader) Kind() Kind {
	switch c := r.peek(); c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return Number
		}
		return Missing
	}
}

// Fields enters the next value if it is an object, as Object does, and returns
// its keys.
func (r *Reader) Fields() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var key []byte
		for ok := r.Object(); ok && r.Next(&key) && yield(key); {
			continue
		}
	}
}

// Object enters the next value if it is an object, or else skips it and returns false.
func (r *Reader) Object() bool { return r.enter('{') }

// Array enters the next value if it is an array, or else skips it and returns false.
func (r *Reader) Array() bool { return r.enter('[') }

func (r *Reader) enter(open byte) bool {
	if r.peek() != open {
		r.Skip()
		return false
	}
	r.i++
	r.isFirst, r.unread = true, false
	if r.depth++; r.depth > MaxDepth {
		r.fail("nested too deep")
		return false
	}
	return r.err == nil
}

// Next reads the next key of the current object into key, or leaves the
// object and returns false. key aliases the body unless it has escapes.
func (r *Reader) Next(key *[]byte) bool {
	if !r.follow('}') {
		return false
	}
	if r.peek() != '"' {
		r.fail("a key was expected")
		return false
	}
	start := r.i + 1
	raw, escaped := r.scanString()
	r.key, r.keyEnd = start, start+len(raw)
	if escaped {
		raw = Unescape(raw)
	}
	*key = raw
	if r.peek() != ':' {
		r.fail("a colon was expected")
		return false
	}
	r.i++
	r.unread = r.err == nil
	return r.unread
}

// More reports whether the current array has another element. If not, it leaves the array.
func (r *Reader) More() bool {
	r.unread = r.follow(']')
	return r.unread
}

// follow moves to the next member of a container, or past its end.
func (r *Reader) follow(end byte) bool {
	if r.unread {
		r.Skip()
	}
	c := r.peek()
	if c == end {
		r.i++
		r.depth--
		r.isFirst = false
		return false
	}
	if r.isFirst {
		r.isFirst = false
		return r.err == nil
	}
	if c != ',' {
		r.fail("a comma or the end was expected")
		return false
	}
	r.i++
	return true
}

// Skip skips the next value and checks its syntax.
func (r *Reader) Skip() {
	switch r.peek() {
	case '{':
		var key []byte
		for ok := r.Object(); ok && r.Next(&key); {
			r.Skip()
		}
	case '[':
		for ok := r.Array(); ok && r.More(); {
			r.Skip()
		}
	default:
		r.readScalar()
	}
}

// peek skips white space and returns the next byte, or 0 at the end and
// after an error.
func (r *Reader) peek() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\n', '\t', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

// fail records the first error and moves to the end, so that every loop ends.
func (r *Reader) fail(reason string) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: r.i, Reason: reason}
	}
	r.i = len(r.b)
}

// SyntaxError is returned for a text that is not valid JSON.
type SyntaxError struct {
	Offset int // bytes from the start of the text
	Reason string
}

// Error returns the offset and the reason, such as "json: offset 6: a comma or the end was
// expected".
func (e *SyntaxError) Error() string {
	return "json: offset " + strconv.Itoa(e.Offset) + ": " + e.Reason
}
