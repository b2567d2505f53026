package condition

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/types"

	"github.com/penstock/penstock/config/strict"
)

const (
	presentName = "present_" // the function requirePresent
	stringName  = "string"   // the function scalarText
	textName    = "text_"    // the function clipArgument
	joinName    = "join_"    // the function join; replaces + unless both sides are numbers

	// maxString is the largest length of the result of + between texts, in bytes.
	maxString = 1 << 10
)

// ruleVisitor is the visitor of a rule's expressions. It replaces fields such as
// values.temperature by variables (slots), which need no reflection.
//
// It ensures that a condition does not hold because of a missing value. A value that each run examines
// is required before the run. A value that only some runs examine becomes an argument of requirePresent.
// Values before ?? and in comparisons with nil may be missing.
type ruleVisitor struct {
	visitor
	fields    map[string]field
	nameTypes types.Map // of fields and of the additional names of a body
	isBody    bool      // missing values are nil

	slots        map[string]ruleSlot // by name without optionalMark
	bare         map[string]int      // the number of uses of a name without a field
	usesPrevious bool
	uncalled     map[*ast.IdentifierNode]bool // names of functions that are not called
}

type ruleSlot struct {
	value func(s *Subject) any
	key   string // key of values or previous; empty for other roots
}

func newRuleVisitor(kind string, isBody bool) *ruleVisitor {
	calls := append(conditionCalls(), "abs", "ceil", "floor", "round", "int", "float", "min", "max", "duration")
	r := &ruleVisitor{
		visitor: visitor{kind: kind, calls: calls, refusedOperators: []string{".."}, withLocation: true},
		fields:  subjectFields(), nameTypes: types.Map{types.Extra: types.Any}, // slots have the type of Extra
		isBody: isBody, slots: map[string]ruleSlot{}, bare: map[string]int{}, uncalled: map[*ast.IdentifierNode]bool{},
	}
	for fieldName, f := range r.fields {
		r.nameTypes[fieldName] = f.valueType
	}
	return r
}

// Visit implements ast.Visitor. Children are visited before their parents.
func (r *ruleVisitor) Visit(node *ast.Node) {
	r.visitor.Visit(node)
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		_, known := r.nameTypes[n.Value]
		switch {
		case n.Value == stringName:
			r.uncalled[n] = true
		case !known || strings.Contains(n.Value, ".") || n.Value == types.Extra:
			r.refuse(n, "unknown name "+n.Value)
			if r.refusedNode == n && !strings.HasPrefix(n.Value, "$") { // $env belongs to expr
				r.suggestion = r.nearest(n.Value, cmp.Or(r.fieldNamed(n.Value), rootValues+"."+n.Value))
			}
		default:
			r.bare[n.Value]++
		}
	case *ast.MemberNode:
		r.member(node, n)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			if name.Value == stringName {
				delete(r.uncalled, name)
				return
			}
			if r.refusedNode == name {
				r.suggestion, _ = strict.Nearest(name.Value, r.calls)
			}
		}
		if method, ok := n.Callee.(*ast.MemberNode); ok { // a method of a time or a duration
			methods := []string{"Hours", "Minutes", "Seconds", "Unix", "Year", "YearDay", "Day", "Hour", "Minute"}
			if name, ok := method.Property.(*ast.StringNode); ok && slices.Contains(methods, name.Value) {
				return
			}
			if r.refusedNode == method.Node {
				r.suggestion = ""
			}
		}
		r.refuse(n, "unknown function")
	case *ast.ConditionalNode:
		r.requireWhenRun(&n.Exp1)
		r.requireWhenRun(&n.Exp2)
	case *ast.BinaryNode:
		r.operator(node, n)
	}
}

func (r *ruleVisitor) member(node *ast.Node, n *ast.MemberNode) {
	optional := n.Optional
	if optional {
		r.makeOptional(&n.Node)
	}
	base, ok := n.Node.(*ast.IdentifierNode)
	if key, isText := n.Property.(*ast.StringNode); ok && isText && r.refusedNode == base && r.suggestion != "" {
		r.suggestion = r.nearest(base.Value, fmt.Sprintf("%s[%q]", rootValues, base.Value+"."+key.Value))
	}
	if !ok || !slices.Contains([]string{rootValues, rootPrevious, rootDevice, rootUplink, rootEvent}, base.Value) {
		return
	}
	key, ok := n.Property.(*ast.StringNode)
	if !ok {
		r.refuse(n.Property, "the name after "+base.Value+" must be a literal: "+base.Value+`.name or `+base.Value+`["name"]`)
		return
	}
	name := base.Value + "." + key.Value
	if _, ok := r.nameTypes[name]; !ok && (base.Value == rootDevice || base.Value == rootUplink) {
		r.refuse(n, "unknown name "+name)
		if nearest, ok := strict.Nearest(key.Value, r.fieldsOf(base.Value)); ok && r.refusedNode == n {
			r.suggestion = base.Value + "." + nearest
		}
		return
	}
	r.bare[base.Value]--
	r.usesPrevious = r.usesPrevious || base.Value == rootPrevious
	s := ruleSlot{value: r.fields[name].value} // set for device and uplink only
	if s.value == nil {
		s.value = keyValue(base.Value, key.Value)
		if base.Value != rootEvent {
			s.key = key.Value
		}
	}
	r.slots[name] = s
	if optional || r.isBody {
		name = optionalMark + name
	}
	ast.Patch(node, &ast.IdentifierNode{Value: name})
}

// nearest returns the root with a name similar to an unknown name, else fallback.
func (r *ruleVisitor) nearest(name, fallback string) string {
	var roots []string
	for _, root := range slices.Sorted(maps.Keys(r.nameTypes)) {
		if !strings.Contains(root, ".") && root != types.Extra {
			roots = append(roots, root)
		}
	}
	if root, ok := strict.Nearest(name, roots); ok {
		return root
	}
	return fallback
}

// fieldNamed returns the field of device or uplink with a name, such as uplink.rssi for rssi.
func (r *ruleVisitor) fieldNamed(name string) string {
	for _, root := range []string{rootDevice, rootUplink} {
		if slices.Contains(r.fieldsOf(root), name) {
			return root + "." + name
		}
	}
	return ""
}

// fieldsOf returns the names of the fields of device or uplink, sorted.
func (r *ruleVisitor) fieldsOf(root string) (fields []string) {
	for _, name := range slices.Sorted(maps.Keys(r.nameTypes)) {
		if field, ok := strings.CutPrefix(name, root+"."); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

func (r *ruleVisitor) operator(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		r.requireWhenRun(&n.Right)
	case "??":
		r.makeOptional(&n.Left)
		r.requireWhenRun(&n.Right)
	case "==", "!=":
		if _, ok := n.Right.(*ast.NilNode); ok {
			r.makeOptional(&n.Left)
		}
		if _, ok := n.Left.(*ast.NilNode); ok {
			r.makeOptional(&n.Right)
		}
	case "matches":
		if _, isSlot := n.Left.(*ast.IdentifierNode); !isSlot { // slots are clipped
			wrap(&n.Left, textName)
		}
	case "+":
		if !numeric(n.Left) || !numeric(n.Right) {
			location := n.Location()
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: joinName}, Arguments: []ast.Node{n.Left, n.Right}})
			(*node).SetLocation(location)
		}
	}
}

func numeric(n ast.Node) bool {
	t := n.Type()
	return t != nil && (t.Kind() == reflect.Int || t.Kind() == reflect.Float64)
}

// wrap replaces a node by a call of a function with the node as the first argument.
func wrap(node *ast.Node, function string, args ...ast.Node) {
	location := (*node).Location()
	ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: append([]ast.Node{*node}, args...)})
	(*node).SetLocation(location)
}

// makeOptional marks the variable of a slot as optional, so that its value may be missing.
func (r *ruleVisitor) makeOptional(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok && r.isSlot(n.Value) {
		n.Value = optionalMark + n.Value
		n.SetType(nil)
	}
}

func (r *ruleVisitor) isSlot(name string) bool {
	_, ok := r.slots[name]
	return ok
}

// requireWhenRun wraps the slots of a node in calls of requirePresent, because not every run evaluates the
// node.
func (r *ruleVisitor) requireWhenRun(node *ast.Node) { ast.Walk(node, presence{r}) }

type presence struct{ rules *ruleVisitor }

// Visit implements ast.Visitor.
func (p presence) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.IdentifierNode)
	if !ok || !p.rules.isSlot(n.Value) {
		return
	}
	name := n.Value
	p.rules.makeOptional(node)
	wrap(node, presentName, &ast.StringNode{Value: name})
}

// usedVariables collects the names of the variables in the compiled tree.
type usedVariables map[string]bool

// Visit implements ast.Visitor.
func (u usedVariables) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok {
		u[n.Value] = true
	}
}
