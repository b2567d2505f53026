package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parserName matches the names of parsers.
var parserName = regexp.MustCompile(`^([Pp]arse|[Dd]ecode|[Uu]nmarshal)`)

// TestEveryPackageWithAParserHasAFuzzTarget looks for functions that are named like a parser and have
// a string or bytes as first parameter. It skips deploy: its programs parse only responses to their
// own requests.
func TestEveryPackageWithAParserHasAFuzzTarget(t *testing.T) {
	root := filepath.Join("..", "..")
	parsers, fuzzed := map[string]string{}, map[string]bool{}
	for _, f := range goFiles(t, root) {
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			function, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || function.Recv != nil:
			case f.isTest():
				fuzzed[f.dir()] = fuzzed[f.dir()] || len(function.Name.Name) > 4 && function.Name.Name[:4] == "Fuzz"
			case parserName.MatchString(function.Name.Name) && takesText(function):
				parsers[f.dir()] = function.Name.Name
			}
		}
	}
	if len(parsers) < 20 {
		t.Fatalf("found %d packages with parsers, want at least 20", len(parsers))
	}
	for dir, name := range parsers {
		if !fuzzed[dir] && !strings.HasPrefix(dir, "deploy/") {
			t.Errorf("%s has the parser %s, but no fuzz target", dir, name)
		}
	}
}

// takesText reports whether the first parameter is a string or a []byte.
func takesText(function *ast.FuncDecl) bool {
	if len(function.Type.Params.List) == 0 {
		return false
	}
	switch parameterType := function.Type.Params.List[0].Type.(type) {
	case *ast.Ident:
		return parameterType.Name == "string"
	case *ast.ArrayType:
		element, ok := parameterType.Elt.(*ast.Ident)
		return ok && parameterType.Len == nil && element.Name == "byte"
	}
	return false
}
