package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

const (
	// maxSource and maxKeys bound what is compiled.
	maxSource = 4 << 10
	maxKeys   = 64
)

// statement is one key and the expression that gives its value.
type statement struct {
	key, expression string
	line, column    int // where the expression begins, from 1
}

// parse reads lines of "key = expression". Another line continues with the expression above
// it; a line that begins with # is a comment.
func parse(source string) ([]statement, error) {
	if len(source) > maxSource {
		return nil, sourceError("", 1, 1, fmt.Sprintf("the source is longer than %d bytes", maxSource))
	}
	var statements []statement
	source = strings.TrimPrefix(source, "\ufeff")
	for i, line := range strings.Split(source, "\n") {
		line = strings.TrimSuffix(line, "\r")
		s, begins := begin(line, i+1)
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#':
			line = "" // keeps the count of lines
		case begins:
			statements = append(statements, s)
			continue
		case len(statements) == 0:
			return nil, sourceError("", i+1, 1, `a line "key = expression" was expected`)
		}
		if len(statements) > 0 {
			statements[len(statements)-1].expression += "\n" + line
		}
	}
	if len(statements) == 0 {
		return nil, sourceError("", 1, 1, "the source holds no expression")
	}
	seen := make(map[string]bool, len(statements))
	for i, s := range statements {
		switch {
		case i >= maxKeys:
			return nil, sourceError(s.key, s.line, 1, fmt.Sprintf("more than %d keys", maxKeys))
		case seen[s.key]:
			return nil, sourceError(s.key, s.line, 1, "the key was given before")
		case strings.TrimSpace(s.expression) == "":
			return nil, sourceError(s.key, s.line, s.column, "the expression is missing")
		}
		seen[s.key] = true
	}
	return statements, nil
}

// begin reads the start of a statement: a key and a single equals sign.
func begin(line string, number int) (statement, bool) {
	remaining := strings.TrimLeft(line, " \t")
	n := 0
	for n < len(remaining) && keyByte(remaining[n], n == 0) {
		n++
	}
	cursor := strings.TrimLeft(remaining[n:], " \t")
	if n == 0 || !strings.HasPrefix(cursor, "=") || strings.HasPrefix(cursor, "==") {
		return statement{}, false
	}
	expression := cursor[1:]
	return statement{
		key: remaining[:n], expression: expression, line: number,
		column: utf8.RuneCountInString(line[:len(line)-len(expression)]) + 1,
	}, true
}

func keyByte(c byte, isFirst bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	}
	return !isFirst && (c >= '0' && c <= '9' || c == '.' || c == '-')
}

// sourceError names the place in the source, line and column from 1.
func sourceError(key string, line, column int, reason string) error {
	return &decoders.Error{Format: format, Field: key, Offset: -1, Reason: fmt.Sprintf("line %d, column %d: %s", line, column, reason)}
}
