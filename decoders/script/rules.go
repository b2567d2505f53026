package script

import (
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// rules is the visitor that refuses expressions whose cost their size does not
// bound. expr stops neither a long run nor a string that doubles, so:
//
//   - predicates do not nest: each level would multiply the time;
//   - let stands alone, without predicates, lists, maps and ranges, since a
//     name used twice in lists of lists doubles what a walk over them visits;
//   - + on anything but numbers goes through join, which bounds the string;
//   - the pattern of matches is a literal, compiled once.
type rules struct {
	reason                     string
	lets, lists, hasPredicates bool
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
		r.lets = true
	case *ast.ArrayNode, *ast.MapNode:
		r.lists = true
	case *ast.BinaryNode:
		switch n.Operator {
		case "..":
			r.lists = true
		case "matches":
			if _, literal := n.Right.(*ast.StringNode); !literal {
				r.refuse("the pattern of matches must be a literal string")
			}
		case "+":
			if !numeric(n.Left) || !numeric(n.Right) {
				ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: joinName}, Arguments: []ast.Node{n.Left, n.Right}})
			}
		}
	}
	if r.lets && (r.lists || r.hasPredicates) {
		r.refuse("let cannot stand with lists, maps, ranges or predicates")
	}
}

func (r *rules) refuse(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

func numeric(n ast.Node) bool {
	t := n.Type()
	return t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Float64)
}
