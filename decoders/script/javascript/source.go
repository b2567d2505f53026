package javascript

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

const (
	// maxSource is how long a source may be, in bytes.
	maxSource = 1 << 20
	// maxNesting is how deep brackets may stand within one another, and
	// maxArrows how often an arrow function's parameters may hold arrow
	// functions: the parser reads each level twice.
	maxNesting = 500
	maxArrows  = 5
	// maxFunctions bounds arrow functions, which the parser reads in time
	// that grows with their square.
	maxFunctions = 2000
)

// module is a source as it will be compiled.
type module struct {
	tree    *ast.Program
	aliases map[string]string
	names   map[string]bool
}

// parse reads a script, a CommonJS module or an ES module. Of the last, the
// keywords import and export are blanked where the parser stumbles on them, so
// that they are never looked for within strings and comments, and places stay.
func parse(source string) (module, error) {
	if len(source) > maxSource {
		return module{}, errorAt(1, 1, fmt.Sprintf("the source is longer than %d bytes", maxSource))
	}
	if err := bracketing(source); err != nil {
		return module{}, err
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
			m.names, err = guardTree(tree)
			return m, err
		}
		if blanked, failed := m.keyword(text, err); failed != nil {
			return module{}, failed
		} else if !blanked {
			return module{}, parseError(err)
		}
	}
	return module{}, errorAt(1, 1, "there are more imports and exports than a source of this length may have")
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
	e := esm{text: text, at: offset, aliases: m.aliases}
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

// bracketing refuses what would take the parser longer than its length
// justifies. It reads strings and comments like code, which can only make it
// stricter.
func bracketing(source string) error {
	var levels []int // of arrow parameters within each open bracket
	functions, last := 0, 0
	line := 1
	for i := range len(source) {
		switch source[i] {
		case '\n':
			line++
		case '(', '[', '{':
			levels, last = append(levels, 0), 0
		case ')', ']', '}':
			last = 0
			if n := len(levels); n > 0 {
				last, levels = levels[n-1], levels[:n-1]
				outward(levels, last)
			}
		case '=':
			if strings.HasPrefix(source[i:], "=>") {
				functions++
				last++
				outward(levels, last)
			}
		}
		if len(levels) > maxNesting || last > maxArrows || functions > maxFunctions {
			return errorAt(line, 1, "brackets or arrow functions are nested too deep")
		}
	}
	return nil
}

func outward(levels []int, level int) {
	if n := len(levels); n > 0 {
		levels[n-1] = max(levels[n-1], level)
	}
}
