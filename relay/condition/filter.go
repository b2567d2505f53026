package condition

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Limits of a condition. Together they keep the costliest one, eight patterns
// over a text that fits none of them, within some milliseconds.
const (
	maxCondition    = 1 << 10 // bytes of source
	conditionNodes  = 100
	maxPatterns     = 8
	maxPattern      = 200  // instructions of all patterns together
	maxConditionRun = 2000 // characters of a text that a condition can read
	maxMemory       = 5000 // elements of lists that one run may make
)

// Message has the fields of a message that a condition can use.
type Message struct {
	Originator  string // digits, or a name
	Destination string // digits
	Text        string // a binary message in hex; the first 2,000 characters count
	Coding      int    // 7, 8 or 16
	Network     string
	At          time.Time // in the zone of its hours and days
}

// messageEnv is the environment of the expression: plain data, since expr would
// let it call any exported method.
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
type Filter struct {
	code     *vm.Program
	machines sync.Pool
}

// CompileFilter checks and compiles a condition: one expression that is true
// or false of a message.
//
//	originator startsWith "447" and text matches "(?i)^stop\\b"
//	weekday <= 5 and time >= "09:00" and time < "17:30"
//
// It can read originator, destination, text, coding (7, 8, 16), network, date ("2026-01-31"),
// time ("09:05") and weekday (1 Monday to 7 Sunday), and may call len, trim, upper, lower,
// indexOf, hasPrefix and hasSuffix. Nothing in it loops: predicates, ranges and let are
// refused, and so are patterns that are not literals or cost too much. The error says where.
func CompileFilter(source string) (*Filter, error) {
	limits := &visitor{name: "condition", calls: conditionCalls(), operators: []string{"..", "+", "**", "^", "*"}}
	code, err := compileBounded(source, maxCondition, limits, expr.Env(messageEnv{}), expr.AsBool(), expr.MaxNodes(conditionNodes), expr.Patch(limits))
	if err != nil {
		return nil, err
	}
	return &Filter{code: code, machines: sync.Pool{New: func() any { return &vm.VM{MemoryBudget: maxMemory} }}}, nil
}

func conditionCalls() []string {
	return []string{"len", "trim", "upper", "lower", "indexOf", "hasPrefix", "hasSuffix"}
}

// compileBounded compiles a source of at most size bytes within the limits, which
// the caller has also given as a patch.
func compileBounded(source string, size int, limits *visitor, options ...expr.Option) (*vm.Program, error) {
	switch {
	case len(source) > size:
		return nil, fmt.Errorf("the %s is longer than %d bytes", limits.name, size)
	case !utf8.ValidString(source):
		return nil, fmt.Errorf("the %s is not UTF-8", limits.name)
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
		return nil, located(err)
	}
	return code, nil
}

// located writes an error of expr with its line and column, both from 1.
func located(err error) error {
	if fileErr, ok := errors.AsType[*file.Error](err); ok {
		reason := fileErr.Message
		if reason == "unexpected token EOF" { // EOF is the name of a token of expr
			reason = "unexpected end of the expression"
		}
		return fmt.Errorf("line %d, column %d: %s", fileErr.Line, fileErr.Column+1, reason)
	}
	return err
}

// Holds reports whether the condition is true of a message.
func (c *Filter) Holds(s Message) (bool, error) {
	env := messageEnv{
		Originator: s.Originator, Destination: s.Destination, Text: firstCharacters(s.Text, maxConditionRun), Coding: s.Coding, Network: s.Network,
		Date: s.At.Format(time.DateOnly), Time: s.At.Format("15:04"), Weekday: (int(s.At.Weekday())+6)%7 + 1,
	}
	m := c.machines.Get().(*vm.VM)
	v, err := m.Run(c.code, env)
	if err != nil {
		return false, err // a machine that broke is not kept
	}
	c.machines.Put(m)
	holds, _ := v.(bool) // AsBool has seen to it
	return holds, nil
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

// visitor refuses what could loop or cost too much.
type visitor struct {
	name             string   // of the expression, in reasons
	calls, operators []string // the functions that are known, the operators that are not
	located          bool     // reasons have the line and the column

	reason                 string
	refused                ast.Node // the node of the reason
	meant                  string   // the name that was probably meant by an unknown one
	patterns, instructions int
}

// Visit implements ast.Visitor.
func (r *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode, *ast.VariableDeclaratorNode, *ast.PointerNode:
		r.reason = "" // says more than that what let names is not known
		r.refuse(n, "a "+r.name+" has no predicates and no let")
	case *ast.BuiltinNode:
		if !slices.Contains(r.calls, n.Name) {
			r.refuse(n, "unknown name "+n.Name)
		}
	case *ast.BinaryNode:
		if slices.Contains(r.operators, n.Operator) {
			r.refuse(n, "a "+r.name+" has no "+n.Operator)
		}
		if n.Operator == "matches" {
			r.pattern(n.Right)
		}
	}
}

func (r *visitor) refuse(n ast.Node, reason string) {
	if r.reason == "" {
		r.reason, r.refused, r.meant = reason, n, ""
	}
}

func (r *visitor) refusal(source string) error {
	reason := r.reason
	if r.meant != "" {
		reason += "; did you mean " + r.meant + "?"
	}
	if !r.located {
		return errors.New(reason)
	}
	return located((&file.Error{Location: r.refused.Location(), Message: reason}).Bind(file.NewSource(source)))
}

// pattern adds the cost of a pattern for each character that it is matched with.
func (r *visitor) pattern(n ast.Node) {
	literal, ok := n.(*ast.StringNode)
	if !ok {
		r.refuse(n, "the pattern of matches must be a literal string")
		return
	}
	parsed, err := syntax.Parse(literal.Value, syntax.Perl)
	if err != nil {
		r.refuse(n, "the pattern does not parse: "+err.Error())
		return
	}
	code, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		r.refuse(n, "the pattern does not compile: "+err.Error())
		return
	}
	r.patterns++
	r.instructions += len(code.Inst)
	if r.patterns > maxPatterns || r.instructions > maxPattern {
		r.refuse(n, fmt.Sprintf("the patterns cost too much: at most %d, of %d steps together", maxPatterns, maxPattern))
	}
}
