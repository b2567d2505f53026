// Package template holds the URLs that account holders give for calls to their
// servers, with placeholders in them (specification 1, events 1, 3 and 4).
//
// It refuses placeholders in the scheme, user, host or port, fragments, and percent signs in
// the path that mean nothing. Values are escaped for where they stand and never examined
// again.
package template

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a URL, compiled: what is literal and where the placeholders
// stand. It is read-only.
type Template struct {
	parts []part
	// unknown is a text in the query that looks like a placeholder but is not one.
	unknown string
	names   []string
}

type part struct {
	literal string
	name    string // of a placeholder; empty for a literal
	path    bool   // stands in the path
}

// Compile reads a URL whose placeholders have the given names. A name that ends in a
// colon, such as "key:", takes what follows it: %key:temperature is the placeholder
// "key:temperature", see keyLength.
//
// A percent sign before a known name is a placeholder, before two hex digits an
// escape (%25 is a percent sign); the longest name counts, and names come first,
// so that an escape whose first digit is a name, %d0 where there is a %d, is
// written in capitals. Check refuses a name that a letter continues.
// Any other percent sign stands for itself in the query, where Check refuses one
// before a name that is not known, and is refused in the path. Literal characters that a
// URL cannot hold are escaped. Placeholders in the scheme, user, host or port are refused,
// and so is a fragment, which no server would see.
func Compile(raw string, names []string) (*Template, error) {
	scheme, remaining, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return nil, errors.New("want an http:// or https:// URL")
	}
	authority := len(remaining)
	if end := strings.IndexAny(remaining, "/?#"); end >= 0 {
		authority = end
	}
	c := compiler{raw: raw, compiled: Template{names: names}}
	if err := c.head(len(scheme) + len("://") + authority); err != nil {
		return nil, err
	}
	for c.offset < len(raw) {
		if err := c.step(); err != nil {
			return nil, err
		}
	}
	c.flush()
	u, err := url.Parse(c.compiled.Expand(func(string) string { return "" })) // with nothing in its placeholders
	switch {
	case err != nil:
		err = errors.New("the URL does not parse")
	case u.Hostname() == "":
		err = errors.New("the URL has no host")
	}
	return &c.compiled, err
}

type compiler struct {
	raw      string
	offset   int
	escaped  int // where the last escape ended
	literal  strings.Builder
	query    bool
	compiled Template
}

// head takes the scheme and the authority, n bytes.
func (c *compiler) head(n int) error {
	for i := range n {
		if c.raw[i] != '%' {
			continue
		}
		remaining := c.raw[i+1 : n]
		if name := longest(remaining, c.compiled.names); len(name) > 1 || name != "" && !isEscape(remaining) {
			return fmt.Errorf("the placeholder %%%s may stand in the path or the query only", name)
		}
	}
	c.literal.WriteString(c.raw[:n])
	c.offset = n
	return nil
}

// step takes one character, escape or placeholder of the path or query.
func (c *compiler) step() error {
	b := c.raw[c.offset]
	switch {
	case b == '%':
		return c.percent()
	case b == '#':
		return errors.New("a fragment (#) never reaches the server; write %23 for a hash")
	case b < ' ' || b == 0x7F:
		return fmt.Errorf("control character at offset %d", c.offset)
	case b == '?':
		c.query, b = true, '?'
	}
	if b == ' ' || b > 0x7F || strings.IndexByte("\"<>\\^`{|}", b) >= 0 {
		fmt.Fprintf(&c.literal, "%%%02X", b)
	} else {
		c.literal.WriteByte(b)
	}
	c.offset++
	return nil
}

func (c *compiler) percent() error {
	remaining := c.raw[c.offset+1:]
	if name := longest(remaining, c.compiled.names); name != "" {
		c.flush()
		c.compiled.parts = append(c.compiled.parts, part{name: name, path: !c.query})
		c.offset += 1 + len(name)
		// A letter behind a name makes another word of it: %msg where there is only %m.
		if len(remaining) > len(name) && isLetter(remaining[len(name)]) && c.compiled.unknown == "" {
			c.compiled.unknown = wordOf(remaining)
		}
		return nil
	}
	escape := isEscape(remaining)
	// An escape may rather be a word: %date would be an octet and a rest that no UTF-8 has,
	// unless an escape stands before or behind it. In capitals it is an escape.
	word := wordOf(remaining)
	misread := len(word) > 2 && word[0] >= 'a' && word[1] >= 'a' && c.escaped != c.offset
	if word != "" && (!escape || misread) && c.compiled.unknown == "" {
		c.compiled.unknown = word
	}
	if escape {
		c.literal.WriteString(c.raw[c.offset : c.offset+3])
		c.offset += 3
		c.escaped = c.offset
		return nil
	}
	if !c.query {
		return c.compiled.refuse("%.10q is neither a placeholder nor an escape", c.raw[c.offset:])
	}
	c.literal.WriteString("%25")
	c.offset++
	return nil
}

// isEscape reports whether s begins with the digits of an escape.
func isEscape(s string) bool { return len(s) >= 2 && isHex(s[0]) && isHex(s[1]) }

// wordOf is the name that s begins with: a letter, then letters, digits and
// underscores.
func wordOf(s string) string {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && (s[n] >= '0' && s[n] <= '9' || s[n] == '_')) {
		n++
	}
	return s[:n]
}

// Check refuses a placeholder in the query that is not known, and a known name in path or
// query that a letter continues: the server would get what nobody meant.
func (t *Template) Check() error {
	if t.unknown == "" {
		return nil
	}
	return t.refuse("%q is not a placeholder here", "%"+t.unknown)
}

// refuse returns the error that lists the placeholders and how to write a percent sign.
func (t *Template) refuse(format string, args ...any) error {
	known := strings.ReplaceAll(strings.Join(t.names, ", %")+",", ":,", ":NAME,")
	return fmt.Errorf(format+"; known are %%%s and %%25 for a percent sign", append(args, known)...)
}

// longest returns the longest placeholder that s begins with: %timeZone is never
// taken for %time and a rest.
func longest(s string, names []string) (found string) {
	for _, name := range names {
		remaining, ok := strings.CutPrefix(s, name)
		if ok && strings.HasSuffix(name, ":") {
			n := keyLength(remaining)
			name, ok = s[:len(name)+n], n > 0
		}
		if ok && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// keyLength returns how many bytes of s belong to a key that it begins with: letters
// and digits, and between them also underscores, full stops and hyphens, so that a
// sentence may end with a key.
func keyLength(s string) int {
	length := 0
	for i, r := range s {
		switch {
		case r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_':
			length = i + utf8.RuneLen(r)
		case r != '.' && r != '-':
			return length
		}
	}
	return length
}

// ExpandText replaces the placeholders of a text by their values, as they are. Names
// are those of Compile; any other percent sign stands for itself.
func ExpandText(text string, names []string, value func(name string) string) string {
	var b strings.Builder
	for {
		literal, remaining, found := strings.Cut(text, "%")
		b.WriteString(literal)
		if !found {
			return b.String()
		}
		name := longest(remaining, names)
		if name == "" {
			b.WriteByte('%')
		} else {
			b.WriteString(value(name))
		}
		text = remaining[len(name):]
	}
}

func (c *compiler) flush() {
	if c.literal.Len() > 0 {
		c.compiled.parts = append(c.compiled.parts, part{literal: c.literal.String()})
		c.literal.Reset()
	}
}

// Sample returns the URL with a sample in the place of every placeholder, for
// checks of where it leads.
func (t *Template) Sample() string {
	return t.Expand(func(string) string { return "0" })
}

// Expand replaces every placeholder by its value, escaped.
func (t *Template) Expand(value func(name string) string) string {
	buf := make([]byte, 0, 256)
	for _, p := range t.parts {
		switch {
		case p.name == "":
			buf = append(buf, p.literal...)
		case p.path && strings.Trim(value(p.name), ".") == "":
			// A segment of dots alone would be a step up for whoever cleans paths.
			buf = append(buf, strings.Repeat("%2E", len(value(p.name)))...)
		default:
			buf = AppendEscaped(buf, value(p.name))
		}
	}
	return string(buf)
}

// AppendEscaped appends a value with all escaped but the unreserved characters (RFC 3986, 2.3),
// which is right in a path segment, in a query and in a form.
func AppendEscaped(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range []byte(s) {
		if isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
