package javascript

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

// maxSource is the largest length of a source, in bytes.
const maxSource = 1 << 20

// module is a source as it will be compiled.
type module struct {
	tree    *ast.Program
	aliases map[string]string
}

// parse reads a script, a CommonJS module or an ES module. Of the last, the
// keywords import and export are blanked where the parser stumbles on them, so
// that they are never looked for within strings and comments, and places stay.
func parse(source string) (module, error) {
	if len(source) > maxSource {
		return module{}, errorAt(1, 1, fmt.Sprintf("the source is longer than %d bytes", maxSource))
	}
	text := []byte(strings.Replace(source, "\ufeff", "", 1))
	if !strings.HasPrefix(source, "\ufeff") {
		text = []byte(source)
	}
	m := module{aliases: map[string]string{}}
	for range min(maxKeywords, maxParsed/(len(text)+1)+1) {
		tree, err := parser.ParseFile(nil, origin, string(text), 0, parser.WithDisableSourceMaps)
		if err == nil {
			m.tree = tree
			return m, unsupported(tree)
		}
		list, ok := errors.AsType[parser.ErrorList](err)
		if !ok || len(list) == 0 {
			return module{}, refused("", clipText(err.Error()))
		}
		place := list[0].Position
		e := esm{text: text, offset: offsetOf(text, place.Line, place.Column), aliases: m.aliases}
		switch {
		case e.offset >= 0 && e.word("export"):
			e.export()
		case e.offset >= 0 && e.word("import"):
			if !e.imports() {
				return module{}, errorAt(place.Line, place.Column, "there is nothing to import but buffer")
			}
		default:
			return module{}, errorAt(place.Line, place.Column, list[0].Message)
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

// offsetOf finds a line and column, which counts characters, both from 1.
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
