// Package script runs the codec expr, whose sources customers write: one
// expression of github.com/expr-lang/expr for each key.
//
//	# comments are on lines of their own
//	temperature = int16be(bytes, 0) / 10
//	humidity    = uint16be(bytes, 2) == 0xffff ? nil : uint16be(bytes, 2) / 100
//	door.open   = bit(bytes, 4, 0)
//
// An expression can read bytes (the payload, a list of integers), fPort, fCnt, object (the
// values that the network server decoded) and params (the device's parameters). A key whose
// expression returns nil is omitted. See functions for the functions that read bytes.
//
// expr has no time limit, so expressions are limited instead: a source has at most 4 KB, an
// expression at most 200 nodes, predicates do not nest, functions that build long strings and
// lists or read the clock are disabled, and lists are capped. An expression has access to the
// frame only.
package script

import (
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
)

const (
	format   = "expr"
	maxNodes = 200
	// maxMemory is the largest number of list elements that one run may create.
	maxMemory = 5000
	// maxBytes and maxElements limit the payload, and the object and the parameters.
	maxBytes    = 1024
	maxElements = 2000
)

// Script is a compiled source. It is safe for concurrent use.
type Script struct {
	programs []program
	machines sync.Pool
}

type program struct {
	key  string
	code *vm.Program
}

// env has the variables of an expression. It has no methods, because an expression could call
// them.
type env struct {
	Bytes  []int          `expr:"bytes"`
	FPort  int            `expr:"fPort"`
	FCnt   int            `expr:"fCnt"`
	Object map[string]any `expr:"object"`
	Params map[string]any `expr:"params"`
}

// Compile compiles a source. The error is a *decoders.Error that
// names the key and, in its reason, the line and the column.
func Compile(source string) (*Script, error) {
	statements, err := parse(source)
	if err != nil {
		return nil, err
	}
	s := &Script{machines: sync.Pool{New: func() any { return &vm.VM{MemoryBudget: maxMemory} }}}
	for _, st := range statements {
		code, err := compile(st)
		if err != nil {
			return nil, err
		}
		s.programs = append(s.programs, program{key: st.key, code: code})
	}
	return s, nil
}

func compile(st statement) (*vm.Program, error) {
	limits := &rules{}
	code, err := expr.Compile(st.expression, append(functions(),
		expr.Env(env{}), expr.MaxNodes(maxNodes), expr.Patch(limits))...)
	if limits.reason != "" {
		return nil, sourceError(st.key, st.line, st.column, limits.reason)
	}
	if err == nil {
		return code, nil
	}
	exprErr, ok := errors.AsType[*file.Error](err)
	if !ok {
		return nil, sourceError(st.key, st.line, st.column, err.Error())
	}
	line, column := st.line, st.column+exprErr.Column
	if exprErr.Line > 1 {
		line, column = st.line+exprErr.Line-1, exprErr.Column+1
	}
	reason := exprErr.Message
	if reason == "unexpected token EOF" { // a term of expr's lexer
		reason = "unexpected end of the expression"
	}
	return nil, sourceError(st.key, line, column, reason)
}

// Decode evaluates the expressions of all keys. If several fail, the first error is returned
// and the others are in the result's Errors.
func (s *Script) Decode(f *decoders.Frame) (decoders.Result, error) {
	var res decoders.Result
	e, err := environment(f)
	if err != nil {
		return res, err
	}
	var firstErr error
	for _, p := range s.programs {
		v, err := s.run(p, e)
		switch {
		case err == nil:
			values.AppendTimed(&res, p.key, v)
		case firstErr == nil:
			firstErr = err
		default:
			res.Errors = append(res.Errors, err.Error())
		}
	}
	return res, firstErr
}

// run evaluates an expression. A machine is not reused after an error.
func (s *Script) run(p program, e *env) (any, error) {
	m := s.machines.Get().(*vm.VM)
	v, err := m.Run(p.code, e)
	if err != nil {
		// An error of a function that reads bytes has an offset.
		if decoderErr, ok := errors.AsType[*decoders.Error](err); ok {
			return nil, &decoders.Error{Format: format, Field: p.key, Offset: decoderErr.Offset, Reason: decoderErr.Reason}
		}
		reason := err.Error()
		if exprErr, ok := errors.AsType[*file.Error](err); ok {
			reason = exprErr.Message
		}
		return nil, newError(p.key, reason)
	}
	s.machines.Put(m)
	return v, nil
}

func environment(f *decoders.Frame) (*env, error) {
	switch {
	case f.Encrypted:
		return nil, newError("payload", "is encrypted")
	case len(f.Payload) > maxBytes:
		return nil, newError("payload", "is longer than an expression may read")
	case decoders.Elements(f.Object, maxElements) < 0:
		return nil, newError("object", "has more values than an expression may read")
	case decoders.Elements(f.Params, maxElements) < 0:
		return nil, newError("params", "have more values than an expression may read")
	}
	e := &env{Bytes: make([]int, len(f.Payload)), FPort: f.FPort, FCnt: int(f.FCnt), Object: f.Object, Params: f.Params}
	for i, b := range f.Payload {
		e.Bytes[i] = int(b)
	}
	return e, nil
}

func newError(field, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: -1, Reason: reason}
}

// rules is a visitor that refuses expressions whose cost grows faster than their size, because
// expr limits neither the time of a run nor the length of strings:
//
//   - predicates do not nest, because each level would multiply the time;
//   - let is not allowed together with predicates, lists, maps and ranges, because a list of
//     lists that uses a name twice doubles with each level;
//   - + is replaced by joinName, which limits strings, unless both operands are numbers;
//   - the pattern of matches is a literal, which is compiled once.
type rules struct {
	reason                          string
	hasLet, hasLists, hasPredicates bool
}

// Visit implements ast.Visitor.
func (r *rules) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		r.hasPredicates = true
		isPredicate := func(n ast.Node) bool { _, ok := n.(*ast.PredicateNode); return ok }
		if ast.Find(n.Node, isPredicate) != nil {
			r.refuse("a predicate within a predicate is not allowed")
		}
	case *ast.BuiltinNode:
		if !slices.Contains(builtins(), n.Name) {
			r.refuse("unknown name " + n.Name)
		}
	case *ast.VariableDeclaratorNode:
		r.hasLet = true
	case *ast.ArrayNode, *ast.MapNode:
		r.hasLists = true
	case *ast.BinaryNode:
		switch n.Operator {
		case "..":
			r.hasLists = true
		case "matches":
			if _, literal := n.Right.(*ast.StringNode); !literal {
				r.refuse("the pattern of matches must be a literal string")
			}
		case "+":
			if !isNumeric(n.Left) || !isNumeric(n.Right) {
				ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: joinName}, Arguments: []ast.Node{n.Left, n.Right}})
			}
		}
	}
	if r.hasLet && (r.hasLists || r.hasPredicates) {
		r.refuse("let cannot be used with lists, maps, ranges or predicates")
	}
}

func (r *rules) refuse(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

func isNumeric(n ast.Node) bool {
	t := n.Type()
	return t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Float64)
}
