package javascript

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
)

// maxSource is the largest length of a source, in bytes.
const maxSource = 1 << 20

// module is a parsed source.
type module struct {
	tree    *ast.Program
	aliases map[string]string
}

// parse parses a script, a CommonJS module or an ES module. The parser does not support the
// keywords import and export. If it fails at one, parse replaces the keyword by blanks, so that
// positions do not change, and parses again. Words in strings and comments are never replaced.
func parse(source string) (module, error) {
	if len(source) > maxSource {
		return module{}, errorAt(1, 1, fmt.Sprintf("the source is longer than %d bytes", maxSource))
	}
	text := []byte(strings.TrimPrefix(source, "\ufeff"))
	m := module{aliases: map[string]string{}}
	for range min(maxKeywords, maxParsed/(len(text)+1)+1) {
		tree, err := parser.ParseFile(nil, sourceName, string(text), 0, parser.WithDisableSourceMaps)
		if err == nil {
			m.tree = tree
			return m, checkPatterns(tree)
		}
		list, ok := errors.AsType[parser.ErrorList](err)
		if !ok || len(list) == 0 {
			return module{}, newError("", clipText(err.Error()))
		}
		position := list[0].Position
		r := moduleRewriter{text: text, offset: offsetOf(text, position.Line, position.Column), aliases: m.aliases}
		switch {
		case r.offset >= 0 && r.hasKeyword("export"):
			r.rewriteExport()
		case r.offset >= 0 && r.hasKeyword("import"):
			// An import of the module buffer is not needed, because Buffer is global.
			line := regexp.MustCompile(`^import\b[^;'"]*['"](node:)?buffer['"][ \t]*;?`).Find(text[r.offset:])
			if r.blank(len(line)); line == nil {
				return module{}, errorAt(position.Line, position.Column, "only buffer can be imported")
			}
		default:
			return module{}, errorAt(position.Line, position.Column, list[0].Message)
		}
	}
	return module{}, errorAt(1, 1, "there are more imports and exports than a source of this length may have")
}

// variablesOf returns the names of the variables at the top level of a source.
func variablesOf(tree *ast.Program) []string {
	var names []string
	for _, statement := range tree.Body {
		var bindings []*ast.Binding
		switch statement := statement.(type) {
		case *ast.VariableStatement:
			bindings = statement.List
		case *ast.LexicalDeclaration:
			bindings = statement.List
		}
		for _, b := range bindings {
			if id, ok := b.Target.(*ast.Identifier); ok {
				names = append(names, id.Name.String())
			}
		}
	}
	return names
}

// offsetOf returns the offset of a line and a column, which counts characters, both from 1.
// It returns -1 if they are beyond the end.
func offsetOf(text []byte, line, column int) int {
	s := string(text)
	start := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(s[start:], '\n')
		if i < 0 {
			return -1
		}
		start += i + 1
	}
	for i := range s[start:] {
		if column--; column == 0 {
			return start + i
		}
	}
	return -1
}

// propertyEscape matches \p{…} and \P{…} after an even number of backslashes.
var propertyEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\[pP]\{`)

// checkPatterns refuses regular expressions with Unicode property escapes: the interpreter
// reads \p{L} as the letters p{L}, so that the codec would return wrong values. It does not
// find patterns that a codec builds at run time (docs/decoders.md).
func checkPatterns(tree *ast.Program) error {
	var err error
	visitPatterns(reflect.ValueOf(tree.Body), map[any]bool{}, func(literal *ast.RegExpLiteral) {
		if err == nil && strings.ContainsAny(literal.Flags, "uv") && propertyEscape.MatchString(literal.Pattern) {
			p := tree.File.Position(int(literal.Idx) - tree.File.Base())
			err = errorAt(p.Line, p.Column, `Unicode property escapes (\p{…}) are not supported in regular expressions`)
		}
	})
	return err
}

// visitPatterns calls fn with each regular expression below a node, because the parser has no
// visitor. seen prevents a second visit of a node that is in several lists.
func visitPatterns(v reflect.Value, seen map[any]bool, fn func(*ast.RegExpLiteral)) {
	switch v.Kind() {
	case reflect.Interface:
		visitPatterns(v.Elem(), seen, fn)
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*file.File]() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		if literal, ok := v.Interface().(*ast.RegExpLiteral); ok {
			fn(literal)
		}
		visitPatterns(v.Elem(), seen, fn)
	case reflect.Slice:
		for i := range v.Len() {
			visitPatterns(v.Index(i), seen, fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visitPatterns(v.Field(i), seen, fn)
			}
		}
	}
}

// maxKeywords is the largest number of imports and exports of a module. Each requires a run of
// the parser; all runs together may read maxParsed bytes.
const (
	maxKeywords = 40
	maxParsed   = 10 << 20
)

// moduleRewriter replaces the keywords at an offset of an ES module.
type moduleRewriter struct {
	text    []byte
	offset  int
	aliases map[string]string
}

func (r *moduleRewriter) hasKeyword(w string) bool {
	isIdentifier := func(c byte) bool {
		return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
	}
	remaining := r.text[r.offset:]
	return bytes.HasPrefix(remaining, []byte(w)) && (len(remaining) == len(w) || !isIdentifier(remaining[len(w)]))
}

// blank replaces text by spaces, except line ends, so that positions do not change.
func (r *moduleRewriter) blank(length int) {
	for i := r.offset; i < r.offset+length; i++ {
		if r.text[i] != '\n' && r.text[i] != '\r' {
			r.text[i] = ' '
		}
	}
}

// defaultAssignment replaces "export default" before a value. It is not longer than the replaced
// text, so that positions do not change. defaultMember is the name of the assigned member.
const (
	defaultAssignment = "exports.d="
	defaultMember     = "d"
)

// rewriteExport replaces the keyword or a list "export {…}" by blanks. The value of
// "export default" becomes a member of exports.
func (r *moduleRewriter) rewriteExport() {
	remaining := string(r.text[r.offset:])
	if named := regexp.MustCompile(`^export\s+default\s+((async\s+)?function\s*\*?\s*[\w$]+|class\s+[\w$]+)`).FindString(remaining); named != "" {
		name := named[strings.LastIndexAny(named, " \t\r\n*")+1:]
		r.aliases["default"] = name
		r.blank(strings.Index(named, "default") + len("default"))
		return
	}
	if value := regexp.MustCompile(`^export\s+default\b`).FindString(remaining); value != "" {
		r.blank(len(value))
		copy(r.text[r.offset+len(value)-len(defaultAssignment):], defaultAssignment)
		return
	}
	if list := regexp.MustCompile(`^export\s*\{([^{}]*)\}[ \t]*;?`).FindStringSubmatch(remaining); list != nil {
		r.addAliases(list[1])
		r.blank(len(list[0]))
		return
	}
	r.blank(len("export"))
}

// addAliases adds the aliases "a as b" of an export list.
func (r *moduleRewriter) addAliases(names string) {
	for name := range strings.SplitSeq(names, ",") {
		if words := strings.Fields(name); len(words) == 3 && words[1] == "as" {
			r.aliases[words[2]] = words[0]
		}
	}
}
