package javascript

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

const (
	// maxDepth is how deep the syntax tree may be: the compiler works on it
	// recursively and folds long sums in time that grows with their square.
	maxDepth = 1500
	// maxPattern is how long a regular expression may be, in bytes.
	maxPattern = 1000
	// boundName is the guard that strings which grow go through. It is no
	// identifier, so that no source can name it.
	boundName = "bound string"
	// keyName is the guard that computed names of members go through.
	keyName = "member name"
	// walking and catching stand among the names for what walks over lists and what
	// gets hold of errors, by syntax or by a name.
	walking  = "walk over a list"
	catching = "caught error"
)

// guardTree refuses what the guards cannot hold and puts the guard of strings
// around what makes them: +, += and templates. goja has no visitor, so that
// reflection walks over its nodes.
//
// It returns the names that the source writes out, by which it can reach the
// interpreter's functions.
func guardTree(tree *ast.Program) (map[string]bool, error) {
	g := treeGuard{file: tree.File, seen: map[any]bool{}, names: map[string]bool{}}
	g.walk(reflect.ValueOf(tree.Body), 0)
	for _, name := range walkers() {
		g.names[walking] = g.names[walking] || g.names[name]
	}
	for _, name := range throwers() {
		g.names[catching] = g.names[catching] || g.names[name]
	}
	return g.names, g.err
}

type treeGuard struct {
	file *file.File
	err  error
	last file.Idx
	seen map[any]bool // nodes stand in more than one list

	names map[string]bool
}

func (g *treeGuard) refuse(idx file.Idx, reason string) {
	if g.err == nil {
		p := g.file.Position(int(idx) - g.file.Base())
		g.err = errorAt(p.Line, p.Column, reason)
	}
}

// walk goes through a node's fields and lists. What stands in an interface or
// a list can be replaced.
func (g *treeGuard) walk(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		g.walk(v.Elem(), depth)
		if e, ok := v.Interface().(ast.Expression); ok && v.CanSet() && grows(e) {
			v.Set(reflect.ValueOf(guarded(boundName, e)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			g.node(v, depth)
		}
	case reflect.Slice:
		for i := range v.Len() {
			g.walk(v.Index(i), depth)
		}
	case reflect.Struct:
		if name, ok := v.Interface().(ast.Identifier); ok {
			g.names[name.Name.String()] = true
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				g.walk(v.Field(i), depth)
			}
		}
	}
}

func (g *treeGuard) node(v reflect.Value, depth int) {
	if depth > maxDepth {
		g.refuse(g.last, "the code is nested too deep")
	}
	if g.seen[v.Interface()] {
		return
	}
	g.seen[v.Interface()] = true
	switch n := v.Interface().(type) {
	case *file.File:
		return
	case *ast.Identifier:
		g.last = n.Idx
	case *ast.StringLiteral:
		g.names[n.Value.String()] = true
	case *ast.BracketExpression:
		defer func() { n.Member = member(n.Member) }()
	case *ast.PropertyKeyed:
		if n.Computed {
			defer func() { n.Key = member(n.Key) }()
		}
	case *ast.WithStatement:
		g.refuse(n.With, "with is not supported")
	case *ast.NumberLiteral:
		if _, isBig := n.Value.(*big.Int); isBig {
			g.refuse(n.Idx, "BigInt is not supported")
		}
	case *ast.ForOfStatement, *ast.SpreadElement, *ast.ArrayPattern:
		g.names[walking] = true
	case *ast.YieldExpression:
		g.names[walking] = g.names[walking] || n.Delegate
	case *ast.CatchStatement:
		g.names[catching] = true
	case *ast.FunctionLiteral:
		g.names[catching] = g.names[catching] || n.Async
	case *ast.ArrowFunctionLiteral:
		g.names[catching] = g.names[catching] || n.Async
	case *ast.RegExpLiteral:
		if len(n.Pattern) > maxPattern {
			g.refuse(n.Idx, fmt.Sprintf("a regular expression is longer than %d bytes", maxPattern))
		}
	}
	if g.err == nil {
		g.walk(v.Elem(), depth+1)
	}
}

// grows reports whether an expression can make a string that is longer than
// each of its parts by more than the source is long.
func grows(e ast.Expression) bool {
	switch n := e.(type) {
	case *ast.BinaryExpression:
		return n.Operator == token.PLUS && !small(n.Left) && !small(n.Right)
	case *ast.AssignExpression:
		return n.Operator == token.PLUS && !small(n.Right)
	case *ast.TemplateLiteral:
		return n.Tag == nil && len(n.Expressions) > 1
	}
	return false
}

// small reports whether an expression is a literal or surely a number.
func small(e ast.Expression) bool {
	switch n := e.(type) {
	case *ast.NumberLiteral, *ast.StringLiteral, *ast.BooleanLiteral:
		return true
	case *ast.UnaryExpression:
		return true
	case *ast.BinaryExpression:
		switch n.Operator {
		case token.PLUS:
			return small(n.Left) && small(n.Right) // longer by no more than the source
		case token.LOGICAL_AND, token.LOGICAL_OR, token.COALESCE:
			return false
		}
		return true
	}
	return false
}

// member guards a computed name, unless it is written out or a number.
func member(e ast.Expression) ast.Expression {
	if sum, ok := e.(*ast.BinaryExpression); small(e) && !(ok && sum.Operator == token.PLUS) {
		return e
	}
	return guarded(keyName, e)
}

func guarded(name string, e ast.Expression) ast.Expression {
	return &ast.CallExpression{
		Callee:           &ast.Identifier{Name: unistring.String(name), Idx: e.Idx0()},
		LeftParenthesis:  e.Idx0(),
		ArgumentList:     []ast.Expression{e},
		RightParenthesis: e.Idx1(),
	}
}
