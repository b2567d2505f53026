// Package jsonbody reads one JSON text (RFC 8259) front to back, once, for
// parsers that must be quick and must not lose a message over a field they
// could do without.
//
// It is strict about syntax and forgiving about types: a value of an unexpected kind is
// passed over and reported as absent, of duplicate keys the last counts, keys are
// case-sensitive, broken UTF-8 becomes U+FFFD. It refuses what nests deeper than MaxDepth. It
// uses no reflection, so a hostile body can make it neither recurse without bound nor
// allocate more than the requested values.
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

// The kinds of value. Missing is the zero Value's.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Reader walks a JSON text. After the first syntax error every method returns its zero
// result; Err and Close report the error.
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
	isFirst bool // a container was just entered: no comma is due
	unread  bool // Next or More stopped before a value that was not read yet
	key     int  // where the text of the key that Next read last begins
	keyEnd  int
	err     error
}

// New returns a reader of body, which it neither changes nor copies. A byte
// order mark is passed over.
func New(body []byte) Reader {
	r := Reader{b: body}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		r.i = 3
	}
	return r
}

// Check returns nil when body is one JSON text and nothing else.
func Check(body []byte) error {
	r := New(body)
	r.Skip()
	return r.Close()
}

// Close returns the first syntax error, a *SyntaxError. It is an error if more than white
// space follows the value.
func (r *Reader) Close() error {
	if r.peek() != 0 || r.i < len(r.b) {
		r.fail("unexpected text after the value")
	}
	return r.err
}

// Offset returns how many bytes have been read.
func (r *Reader) Offset() int { return r.i }

// Key returns where the text of the key that was read last begins and ends, without its
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

// Fields enters the next value when it is an object, as Object does, and gives
// its keys.
func (r *Reader) Fields() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var key []byte
		for ok := r.Object(); ok && r.Next(&key) && yield(key); {
			continue
		}
	}
}

// Object enters the next value when it is an object; any other value it skips
// and returns false.
func (r *Reader) Object() bool { return r.enter('{') }

// Array enters the next value when it is an array; any other value it skips
// and returns false.
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

// Next reads the next key of the object entered last into key, or leaves the
// object and returns false. Key aliases the body unless it holds escapes.
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

// More reports whether the array entered last has another element, or leaves it
// and returns false.
func (r *Reader) More() bool {
	r.unread = r.follow(']')
	return r.unread
}

// follow reads up to the next member of a container, or past its end.
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

// Skip passes over the next value, checking its syntax.
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
		r.scalar()
	}
}

// peek passes over white space and returns the next byte, 0 at the end or
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

// fail keeps the first error and moves to the end, so that every loop ends.
func (r *Reader) fail(reason string) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: r.i, Reason: reason}
	}
	r.i = len(r.b)
}

// SyntaxError is returned for a text that is not JSON.
type SyntaxError struct {
	Offset int // bytes from the start of the text
	Reason string
}

// Error returns the place and the reason: "json: offset 6: a comma or the end was
// expected".
func (e *SyntaxError) Error() string {
	return "json: offset " + strconv.Itoa(e.Offset) + ": " + e.Reason
}
