package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// maxImports is how many imports of ours may follow one another.
const maxImports = 6

func TestThePictureIsNotDeep(t *testing.T) {
	imports := make(map[string][]string)
	for _, f := range goFiles(t, filepath.Join("..", "..")) {
		if f.isTest() {
			continue
		}
		for _, imported := range f.imports {
			if ours, ok := strings.CutPrefix(imported, module); ok {
				imports[f.dir()] = append(imports[f.dir()], ours)
			}
		}
	}
	known := make(map[string][]string)
	for dir := range imports {
		if chain := longest(dir, imports, known); len(chain) > maxImports+1 {
			t.Errorf("%d imports follow one another, want at most %d: %s", len(chain)-1, maxImports, strings.Join(chain, " > "))
		}
	}
}

// longest returns the longest chain of imports that begins with a package.
func longest(dir string, imports, known map[string][]string) []string {
	if chain, ok := known[dir]; ok {
		return chain
	}
	var below []string
	for _, next := range imports[dir] {
		if chain := longest(next, imports, known); len(chain) > len(below) {
			below = chain
		}
	}
	known[dir] = append([]string{dir}, below...)
	return known[dir]
}
