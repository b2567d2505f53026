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
	// presentName is the function that refuses a missing value.
	presentName = "present_"
	// stringName is the function that converts a value to a text, as + does with a text.
	stringName = "string"
	// textName is the function that bounds the text of a pattern.
	textName = "text_"
	// joinName is + between values that are not known to be numbers.
	joinName = "join_"

	// maxString is the length of the longest text that + makes, in bytes.
	maxString = 1 << 10
)

// ruleVisitor is the visitor of a rule's expressions. Beyond what visitor refuses, it turns
// values.temperature and its like into slots, which cost no reflection, and sees to it that a
// condition never holds because of a value that is missing: one that every run examines is
// required before the run, any other is refused where it stands, unless ?? or a comparison
// with nil looks after it.
type ruleVisitor struct {
	visitor
	known types.Map
	body  bool // a missing value is nil

	slots    map[string]ruleSlot // by their names without a mark
	bare     map[string]int      // uses of a root by itself
	previous bool
	uncalled map[*ast.IdentifierNode]bool // functions that stand where a value should
}

type ruleSlot struct{ root, key string }

func newRuleVisitor(name string, body bool) *ruleVisitor {
	calls := append(conditionCalls(), "abs", "ceil", "floor", "round", "int", "float", "min", "max", "duration")
	return &ruleVisitor{
		visitor: visitor{name: name, calls: calls, operators: []string{".."}, located: true},
		known:   subjectTypes(), body: body, slots: map[string]ruleSlot{}, bare: map[string]int{}, uncalled: map[*ast.IdentifierNode]bool{},
	}
}

// Visit implements ast.Visitor. Children are visited before their parents.
func (r *ruleVisitor) Visit(node *ast.Node) {
	r.visitor.Visit(node)
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		_, known := r.known[n.Value]
		switch {
		case n.Value == stringName:
			r.uncalled[n] = true
		case !known || strings.Contains(n.Value, ".") || n.Value == types.Extra:
			r.refuse(n, "unknown name "+n.Value)
			if r.refused == n && !strings.HasPrefix(n.Value, "$") { // $env is expr's
				r.meant = r.nearest(n.Value, cmp.Or(r.fieldNamed(n.Value), rootValues+"."+n.Value))
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
			if r.refused == name {
				r.meant, _ = strict.Nearest(name.Value, r.calls)
			}
		}
		if method, ok := n.Callee.(*ast.MemberNode); ok { // of a time or a duration
			methods := []string{"Hours", "Minutes", "Seconds", "Unix", "Year", "YearDay", "Day", "Hour", "Minute"}
			if name, ok := method.Property.(*ast.StringNode); ok && slices.Contains(methods, name.Value) {
				return
			}
			if r.refused == method.Node {
				r.meant = ""
			}
		}
		r.refuse(n, "unknown function")
	case *ast.ConditionalNode:
		r.sometimes(&n.Exp1)
		r.sometimes(&n.Exp2)
	case *ast.BinaryNode:
		r.operator(node, n)
	}
}

func (r *ruleVisitor) member(node *ast.Node, n *ast.MemberNode) {
	optional := n.Optional
	if optional {
		r.optional(&n.Node)
	}
	base, ok := n.Node.(*ast.IdentifierNode)
	if key, isText := n.Property.(*ast.StringNode); ok && isText && r.refused == base && r.meant != "" {
		r.meant = r.nearest(base.Value, fmt.Sprintf("%s[%q]", rootValues, base.Value+"."+key.Value))
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
	if _, ok := r.known[name]; !ok && (base.Value == rootDevice || base.Value == rootUplink) {
		r.refuse(n, "unknown name "+name)
		if field, ok := strict.Nearest(key.Value, r.fields(base.Value)); ok && r.refused == n {
			r.meant = base.Value + "." + field
		}
		return
	}
	r.bare[base.Value]--
	r.previous = r.previous || base.Value == rootPrevious
	r.slots[name] = ruleSlot{root: base.Value, key: key.Value}
	if optional || r.body {
		name = optionalMark + name
	}
	ast.Patch(node, &ast.IdentifierNode{Value: name})
}

// nearest returns the root whose name is nearly that of an unknown one, else fallback.
func (r *ruleVisitor) nearest(name, fallback string) string {
	var roots []string
	for _, root := range slices.Sorted(maps.Keys(r.known)) {
		if !strings.Contains(root, ".") && root != types.Extra {
			roots = append(roots, root)
		}
	}
	if root, ok := strict.Nearest(name, roots); ok {
		return root
	}
	return fallback
}

// fieldNamed returns the field of device or uplink that has a name: uplink.rssi for rssi.
func (r *ruleVisitor) fieldNamed(name string) string {
	for _, root := range []string{rootDevice, rootUplink} {
		if slices.Contains(r.fields(root), name) {
			return root + "." + name
		}
	}
	return ""
}

// fields returns the names of the fields of device or uplink, sorted.
func (r *ruleVisitor) fields(root string) (fields []string) {
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if field, ok := strings.CutPrefix(name, root+"."); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

func (r *ruleVisitor) operator(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		r.sometimes(&n.Right)
	case "??":
		r.optional(&n.Left)
		r.sometimes(&n.Right)
	case "==", "!=":
		if _, ok := n.Right.(*ast.NilNode); ok {
			r.optional(&n.Left)
		}
		if _, ok := n.Left.(*ast.NilNode); ok {
			r.optional(&n.Right)
		}
	case "matches":
		if _, slot := n.Left.(*ast.IdentifierNode); !slot {
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

func wrap(node *ast.Node, function string, args ...ast.Node) {
	location := (*node).Location()
	ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: append([]ast.Node{*node}, args...)})
	(*node).SetLocation(location)
}

func (r *ruleVisitor) optional(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok && r.isSlot(n.Value) {
		n.Value = optionalMark + n.Value
		n.SetType(nil)
	}
}

func (r *ruleVisitor) isSlot(name string) bool {
	_, ok := r.slots[name]
	return ok
}

// sometimes has what not every run examines refuse its missing values itself.
func (r *ruleVisitor) sometimes(node *ast.Node) { ast.Walk(node, presence{r}) }

type presence struct{ rules *ruleVisitor }

// Visit implements ast.Visitor.
func (p presence) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.IdentifierNode)
	if !ok || !p.rules.isSlot(n.Value) {
		return
	}
	name := n.Value
	p.rules.optional(node)
	wrap(node, presentName, &ast.StringNode{Value: name})
}

// used collects the slots of the compiled tree, with their marks.
type used map[string]bool

// Visit implements ast.Visitor.
func (u used) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.IdentifierNode); ok {
		u[n.Value] = true
	}
}
