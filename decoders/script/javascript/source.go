package javascript

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

// maxSource is how long a source may be, in bytes.
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
		if blanked, failed := m.keyword(text, err); failed != nil {
			return module{}, failed
		} else if !blanked {
			return module{}, parseError(err)
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

// keyword blanks the import or export at the place of a parser's error.
func (m *module) keyword(text []byte, err error) (bool, error) {
	var list parser.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return false, nil
	}
	p := list[0].Position
	offset := offsetOf(text, p.Line, p.Column)
	if offset < 0 {
		return false, nil
	}
	e := esm{text: text, offset: offset, aliases: m.aliases}
	switch {
	case e.word("export"):
		return e.export(), nil
	case e.word("import"):
		if !e.imports() {
			return false, errorAt(p.Line, p.Column, "there is nothing to import but buffer")
		}
		return true, nil
	}
	return false, nil
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
