package javascript

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
)

// propertyEscape matches \p{…} and \P{…} behind an even number of backslashes.
var propertyEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\[pP]\{`)

// unsupported refuses regular expressions with Unicode property escapes: the interpreter
// reads \p{L} as the letters p{L}, so that the codec would give wrong values. Patterns
// that a codec builds at run time are not seen here (docs/decoders.md).
func unsupported(tree *ast.Program) error {
	var err error
	visit(reflect.ValueOf(tree.Body), map[any]bool{}, func(literal *ast.RegExpLiteral) {
		if err == nil && strings.ContainsAny(literal.Flags, "uv") && propertyEscape.MatchString(literal.Pattern) {
			p := tree.File.Position(int(literal.Idx) - tree.File.Base())
			err = errorAt(p.Line, p.Column, `Unicode property escapes (\p{…}) are not supported in regular expressions`)
		}
	})
	return err
}

// visit calls found with each regular expression below a node. The parser has no visitor
// of its own; seen holds the nodes that stand in more than one list.
func visit(v reflect.Value, seen map[any]bool, found func(*ast.RegExpLiteral)) {
	switch v.Kind() {
	case reflect.Interface:
		visit(v.Elem(), seen, found)
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*file.File]() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		if literal, ok := v.Interface().(*ast.RegExpLiteral); ok {
			found(literal)
		}
		visit(v.Elem(), seen, found)
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), seen, found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visit(v.Field(i), seen, found)
			}
		}
	}
}
