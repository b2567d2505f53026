package condition

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Limits of a condition. Within them the costliest condition, eight patterns that do not match a long
// text, takes some milliseconds.
const (
	maxCondition    = 1 << 10 // bytes of source
	conditionNodes  = 100
	maxPatterns     = 8
	maxInstructions = 200  // instructions of all patterns together
	maxTextRead     = 2000 // characters of a text that a condition can read
	maxMemory       = 5000 // elements of lists that a run can create
)

// Message has the fields of a message that a condition can use.
type Message struct {
	Originator  string // digits or a name
	Destination string // digits
	Text        string // hex for a binary message; conditions read the first 2,000 characters
	Coding      int    // 7, 8 or 16
	Network     string
	ReceivedAt  time.Time // in the zone of date, time and weekday
}

// messageEnv is the environment of an expression. It has no methods, because an expression could
// call them.
type messageEnv struct {
	Originator  string `expr:"originator"`
	Destination string `expr:"destination"`
	Text        string `expr:"text"`
	Coding      int    `expr:"coding"`
	Network     string `expr:"network"`
	Date        string `expr:"date"`    // 2026-01-31
	Time        string `expr:"time"`    // 09:05
	Weekday     int    `expr:"weekday"` // 1 Monday to 7 Sunday
}

// Filter is a compiled condition. It is safe for concurrent use.
type Filter struct{ code *vm.Program }

// CompileFilter checks and compiles a condition: an expression that is true or false for a message.
//
//	originator startsWith "447" and text matches "(?i)^stop\\b"
//	weekday <= 5 and time >= "09:00" and time < "17:30"
//
// The expression can read originator, destination, text, coding (7, 8, 16), network, date
// ("2026-01-31"), time ("09:05") and weekday (1 Monday to 7 Sunday). It can call len, trim, upper,
// lower, indexOf, hasPrefix and hasSuffix. Predicates, ranges and let are refused because they could
// loop, and so are patterns that are not literals or cost too much, and the operators +, *, ** and ^. A
// syntax error has the line and the column.
func CompileFilter(source string) (*Filter, error) {
	limits := &visitor{kind: "condition", calls: conditionCalls(), refusedOperators: []string{"..", "+", "**", "^", "*"}}
	code, err := compileBounded(source, maxCondition, limits, expr.Env(messageEnv{}), expr.AsBool(), expr.MaxNodes(conditionNodes), expr.Patch(limits))
	if err != nil {
		return nil, err
	}
	return &Filter{code}, nil
}

func conditionCalls() []string {
	return []string{"len", "trim", "upper", "lower", "indexOf", "hasPrefix", "hasSuffix"}
}

// compileBounded compiles a source of at most size bytes. The options must include limits as a patch.
// If limits refuses the expression, its reason is the error.
func compileBounded(source string, size int, limits *visitor, options ...expr.Option) (*vm.Program, error) {
	switch {
	case len(source) > size:
		return nil, fmt.Errorf("the %s is longer than %d bytes", limits.kind, size)
	case !utf8.ValidString(source):
		return nil, fmt.Errorf("the %s is not UTF-8", limits.kind)
	}
	options = append(options, expr.DisableAllBuiltins())
	for _, name := range limits.calls {
		options = append(options, expr.EnableBuiltin(name))
	}
	code, err := expr.Compile(source, options...)
	if limits.reason != "" {
		return nil, limits.refusal(source)
	}
	if err != nil {
		return nil, locateError(err)
	}
	return code, nil
}

// locateError adds the line and the column, both from 1, to an error of expr.
func locateError(err error) error {
	if fileErr, ok := errors.AsType[*file.Error](err); ok {
		reason := fileErr.Message
		if reason == "unexpected token EOF" { // expr's name for the end
			reason = "unexpected end of the expression"
		}
		return fmt.Errorf("line %d, column %d: %s", fileErr.Line, fileErr.Column+1, reason)
	}
	return err
}

// Holds reports whether the condition is true for a message.
func (f *Filter) Holds(m Message) (bool, error) {
	env := messageEnv{
		Originator: m.Originator, Destination: m.Destination, Text: firstCharacters(m.Text, maxTextRead), Coding: m.Coding, Network: m.Network,
		Date: m.ReceivedAt.Format(time.DateOnly), Time: m.ReceivedAt.Format("15:04"), Weekday: weekday(m.ReceivedAt),
	}
	machine := vm.VM{MemoryBudget: maxMemory}
	v, err := machine.Run(f.code, env)
	holds, _ := v.(bool) // AsBool refuses other results
	return holds, err
}

func firstCharacters(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// visitor finds the first node of an expression that could loop or cost too much.
type visitor struct {
	kind             string   // of expression, for reasons
	calls            []string // the allowed functions
	refusedOperators []string
	withLocation     bool // reasons have the line and the column

	reason                 string // why the expression is refused
	refusedNode            ast.Node
	suggestion             string // a known name that is similar to the unknown name
	patterns, instructions int    // numbers of all patterns so far
}

// Visit implements ast.Visitor.
func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode, *ast.VariableDeclaratorNode, *ast.PointerNode:
		v.reason = "" // replaces the reason "unknown name" of a let
		v.refuse(n, "a "+v.kind+" has no predicates and no let")
	case *ast.BuiltinNode:
		if !slices.Contains(v.calls, n.Name) {
			v.refuse(n, "unknown name "+n.Name)
		}
	case *ast.BinaryNode:
		if slices.Contains(v.refusedOperators, n.Operator) {
			v.refuse(n, "a "+v.kind+" has no "+n.Operator)
		}
		if n.Operator == "matches" {
			v.pattern(n.Right)
		}
	}
}

func (v *visitor) refuse(n ast.Node, reason string) {
	if v.reason == "" {
		v.reason, v.refusedNode, v.suggestion = reason, n, ""
	}
}

func (v *visitor) refusal(source string) error {
	reason := v.reason
	if v.suggestion != "" {
		reason += "; did you mean " + v.suggestion + "?"
	}
	if !v.withLocation {
		return errors.New(reason)
	}
	return locateError((&file.Error{Location: v.refusedNode.Location(), Message: reason}).Bind(file.NewSource(source)))
}

// pattern adds the cost of a pattern: the number of its instructions.
func (v *visitor) pattern(n ast.Node) {
	literal, ok := n.(*ast.StringNode)
	if !ok {
		v.refuse(n, "the pattern of matches must be a literal string")
		return
	}
	parsed, err := syntax.Parse(literal.Value, syntax.Perl)
	if err != nil {
		v.refuse(n, "the pattern does not parse: "+err.Error())
		return
	}
	code, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		v.refuse(n, "the pattern does not compile: "+err.Error())
		return
	}
	v.patterns++
	v.instructions += len(code.Inst)
	if v.patterns > maxPatterns || v.instructions > maxInstructions {
		v.refuse(n, fmt.Sprintf("the patterns cost too much: at most %d, of %d steps together", maxPatterns, maxInstructions))
	}
}
