package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

const (
	// maxSource and maxKeys limit a source.
	maxSource = 4 << 10
	maxKeys   = 64
)

// statement is one key and its expression.
type statement struct {
	key, expression string
	line, column    int // start of the expression, from 1
}

// parse parses lines of "key = expression". Other lines continue the preceding expression. A
// line that begins with # is a comment.
func parse(source string) ([]statement, error) {
	if len(source) > maxSource {
		return nil, sourceError("", 1, 1, fmt.Sprintf("the source is longer than %d bytes", maxSource))
	}
	var statements []statement
	source = strings.TrimPrefix(source, "\ufeff")
	for i, line := range strings.Split(source, "\n") {
		line = strings.TrimSuffix(line, "\r")
		s, isStart := parseStart(line, i+1)
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#':
			line = "" // added to the expression, so that its lines can be counted
		case isStart:
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
		return nil, sourceError("", 1, 1, "the source has no expression")
	}
	seen := make(map[string]bool, len(statements))
	for i, s := range statements {
		switch {
		case i >= maxKeys:
			return nil, sourceError(s.key, s.line, 1, fmt.Sprintf("more than %d keys", maxKeys))
		case seen[s.key]:
			return nil, sourceError(s.key, s.line, 1, "the key is repeated")
		case strings.TrimSpace(s.expression) == "":
			return nil, sourceError(s.key, s.line, s.column, "the expression is missing")
		}
		seen[s.key] = true
	}
	return statements, nil
}

// parseStart parses the start of a statement: a key and an equals sign, not ==.
func parseStart(line string, number int) (statement, bool) {
	remaining := strings.TrimLeft(line, " \t")
	n := 0
	for n < len(remaining) && isKeyByte(remaining[n], n == 0) {
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

func isKeyByte(c byte, isFirst bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	}
	return !isFirst && (c >= '0' && c <= '9' || c == '.' || c == '-')
}

// sourceError returns an error with a position in the source, line and column from 1.
func sourceError(key string, line, column int, reason string) error {
	return &decoders.Error{Format: format, Field: key, Offset: -1, Reason: fmt.Sprintf("line %d, column %d: %s", line, column, reason)}
}
