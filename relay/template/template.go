// Package template compiles URLs with placeholders. The gateway calls the servers of accounts at these
// URLs.
//
// It refuses placeholders in the scheme, user, host or port, fragments, and invalid percent signs in
// the path. Values are escaped for their position. Percent signs in values are not placeholders.
package template

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a compiled URL. It is read-only.
type Template struct {
	parts []part
	// unknown is the first text that looks like a placeholder but is not one.
	unknown string
	names   []string
}

type part struct {
	literal string
	name    string // name of a placeholder; empty for a literal
	path    bool   // the placeholder is in the path
}

// Compile compiles a URL with the placeholders in names. A name that ends in a colon, such as "key:",
// includes the key after it: %key:temperature is the placeholder "key:temperature". keyLength defines
// the characters of keys.
//
// A percent sign before a name begins a placeholder with the longest matching name. Otherwise, before
// two hex digits, it is an escape: %25 is a percent sign. An escape that begins like a placeholder,
// such as %d0 if there is a placeholder %d, must be in upper case: %D0. Any other percent sign is
// literal in the query and an error in the path. Check refuses texts that look like unknown
// placeholders. Literal characters that are invalid in a URL are escaped. Placeholders in the
// scheme, user, host or port are refused, and so is a fragment, which servers do not receive.
func Compile(raw string, names []string) (*Template, error) {
	scheme, remaining, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return nil, errors.New("the URL must begin with http:// or https://")
	}
	authority := len(remaining)
	if end := strings.IndexAny(remaining, "/?#"); end >= 0 {
		authority = end
	}
	c := compiler{raw: raw, compiled: Template{names: names}}
	if err := c.readHead(len(scheme) + len("://") + authority); err != nil {
		return nil, err
	}
	for c.offset < len(raw) {
		if err := c.readNext(); err != nil {
			return nil, err
		}
	}
	c.flush()
	u, err := url.Parse(c.compiled.Expand(func(string) string { return "" }))
	switch {
	case err != nil:
		err = errors.New("the URL is not valid")
	case u.Hostname() == "":
		err = errors.New("the URL has no host")
	}
	return &c.compiled, err
}

type compiler struct {
	raw      string
	offset   int
	escaped  int // offset after the last escape
	literal  strings.Builder
	inQuery  bool
	compiled Template
}

// readHead reads the scheme and the authority, which have length bytes.
func (c *compiler) readHead(length int) error {
	for i := range length {
		if c.raw[i] != '%' {
			continue
		}
		remaining := c.raw[i+1 : length]
		if name := longestName(remaining, c.compiled.names); len(name) > 1 || name != "" && !isEscape(remaining) {
			return fmt.Errorf("the placeholder %%%s is allowed in the path and the query only", name)
		}
	}
	c.literal.WriteString(c.raw[:length])
	c.offset = length
	return nil
}

// readNext reads one character, escape or placeholder of the path or query.
func (c *compiler) readNext() error {
	b := c.raw[c.offset]
	switch {
	case b == '%':
		return c.readPercent()
	case b == '#':
		return errors.New("a fragment (#) is not sent to the server; write %23 for a hash")
	case b < ' ' || b == 0x7F:
		return fmt.Errorf("control character at offset %d", c.offset)
	case b == '?':
		c.inQuery = true
	}
	if b == ' ' || b > 0x7F || strings.IndexByte("\"<>\\^`{|}", b) >= 0 {
		fmt.Fprintf(&c.literal, "%%%02X", b)
	} else {
		c.literal.WriteByte(b)
	}
	c.offset++
	return nil
}

// readPercent reads a percent sign with the placeholder or the escape that it begins.
func (c *compiler) readPercent() error {
	remaining := c.raw[c.offset+1:]
	if name := longestName(remaining, c.compiled.names); name != "" {
		c.flush()
		c.compiled.parts = append(c.compiled.parts, part{name: name, path: !c.inQuery})
		c.offset += 1 + len(name)
		// A letter after the name continues it: %msg is not %m.
		if len(remaining) > len(name) && isLetter(remaining[len(name)]) && c.compiled.unknown == "" {
			c.compiled.unknown = wordOf(remaining)
		}
		return nil
	}
	escape := isEscape(remaining)
	// Two lower-case hex digits that begin a longer word, as in %date, are an escape only directly
	// after another escape.
	word := wordOf(remaining)
	isWord := len(word) > 2 && word[0] >= 'a' && word[1] >= 'a' && c.escaped != c.offset
	if word != "" && (!escape || isWord) && c.compiled.unknown == "" {
		c.compiled.unknown = word
	}
	if escape {
		c.literal.WriteString(c.raw[c.offset : c.offset+3])
		c.offset += 3
		c.escaped = c.offset
		return nil
	}
	if !c.inQuery {
		return c.compiled.refuse("%.10q is neither a placeholder nor an escape", c.raw[c.offset:])
	}
	c.literal.WriteString("%25")
	c.offset++
	return nil
}

// isEscape reports whether s begins with the digits of an escape.
func isEscape(s string) bool { return len(s) >= 2 && isHex(s[0]) && isHex(s[1]) }

// wordOf returns the word at the start of s: a letter, then letters, digits and underscores.
func wordOf(s string) string {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && (s[n] >= '0' && s[n] <= '9' || s[n] == '_')) {
		n++
	}
	return s[:n]
}

// Check returns an error if the URL has a text that looks like an unknown placeholder, even if the
// text begins with a known name.
func (t *Template) Check() error {
	if t.unknown == "" {
		return nil
	}
	return t.refuse("%q is not a placeholder here", "%"+t.unknown)
}

// refuse returns an error that lists the placeholders and the escape of a percent sign.
func (t *Template) refuse(format string, args ...any) error {
	known := strings.ReplaceAll(strings.Join(t.names, ", %")+",", ":,", ":NAME,")
	return fmt.Errorf(format+"; the placeholders are %%%s and %%25 for a percent sign", append(args, known)...)
}

// longestName returns the longest placeholder at the start of s: %timeZone is not %time.
func longestName(s string, names []string) (found string) {
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

// keyLength returns the length in bytes of the key at the start of s: letters, digits and
// underscores. Full stops and hyphens are allowed only between these, because a key may end a sentence.
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

// ExpandText replaces the placeholders of a text by their values without escaping. names is the same as
// for Compile. Any other percent sign is literal.
func ExpandText(text string, names []string, value func(name string) string) string {
	var b strings.Builder
	for {
		literal, remaining, found := strings.Cut(text, "%")
		b.WriteString(literal)
		if !found {
			return b.String()
		}
		name := longestName(remaining, names)
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

// Sample returns the URL with a sample value for each placeholder, for a check of its address.
func (t *Template) Sample() string { return t.Expand(func(string) string { return "0" }) }

// Expand replaces the placeholders by their escaped values.
func (t *Template) Expand(value func(name string) string) string {
	buf := make([]byte, 0, 256)
	for _, p := range t.parts {
		switch {
		case p.name == "":
			buf = append(buf, p.literal...)
		case p.path && strings.Trim(value(p.name), ".") == "":
			// Dots are escaped, because servers resolve the segments "." and "..".
			buf = append(buf, strings.Repeat("%2E", len(value(p.name)))...)
		default:
			buf = AppendEscaped(buf, value(p.name))
		}
	}
	return string(buf)
}

// AppendEscaped appends a value and escapes all but the unreserved characters (RFC 3986, 2.3). The
// result is valid in a path segment, in a query and in a form.
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
