package javascript

import (
	"bytes"
	"regexp"
	"strings"
)

// maxKeywords is the largest number of imports and exports of a module; each costs a run of
// the parser, which together may read maxParsed bytes.
const (
	maxKeywords = 40
	maxParsed   = 10 << 20
)

// esm is a place in the text of an ES module.
type esm struct {
	text    []byte
	offset  int
	aliases map[string]string
}

func (e *esm) word(w string) bool {
	remaining := e.text[e.offset:]
	return bytes.HasPrefix(remaining, []byte(w)) && (len(remaining) == len(w) || !identifierByte(remaining[len(w)]))
}

func identifierByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// blank writes spaces, which keep every place in the source as it was.
func (e *esm) blank(length int) {
	for i := e.offset; i < e.offset+length; i++ {
		if e.text[i] != '\n' && e.text[i] != '\r' {
			e.text[i] = ' '
		}
	}
}

// defaulted is the variable for the value of "export default"; it is as long as the words it
// stands for.
const (
	defaulted     = "exports.d="
	defaultMember = "d"
)

// export blanks the keyword, the list of "export {…}", or turns the value of
// "export default" into a member of exports.
func (e *esm) export() {
	remaining := string(e.text[e.offset:])
	if named := regexp.MustCompile(`^export\s+default\s+((async\s+)?function\s*\*?\s*[\w$]+|class\s+[\w$]+)`).FindString(remaining); named != "" {
		name := named[strings.LastIndexAny(named, " \t\r\n*")+1:]
		e.aliases["default"] = name
		e.blank(strings.Index(named, "default") + len("default"))
		return
	}
	if value := regexp.MustCompile(`^export\s+default\b`).FindString(remaining); value != "" {
		e.blank(len(value))
		copy(e.text[e.offset+len(value)-len(defaulted):], defaulted)
		return
	}
	if list := regexp.MustCompile(`^export\s*\{([^{}]*)\}[ \t]*;?`).FindStringSubmatch(remaining); list != nil {
		e.list(list[1])
		e.blank(len(list[0]))
		return
	}
	e.blank(len("export"))
}

// list keeps the names that "a as b" gives.
func (e *esm) list(names string) {
	for name := range strings.SplitSeq(names, ",") {
		if words := strings.Fields(name); len(words) == 3 && words[1] == "as" {
			e.aliases[words[2]] = words[0]
		}
	}
}

// imports blanks an import of the module buffer, whose Buffer is there anyway.
func (e *esm) imports() bool {
	line := regexp.MustCompile(`^import\b[^;'"]*['"](node:)?buffer['"][ \t]*;?`).FindString(string(e.text[e.offset:]))
	e.blank(len(line))
	return line != ""
}
