// Package condition compiles and evaluates the expressions of relays and rules: the
// filter of a relay, the conditions of a rule and the bodies of its actions, in the
// language of github.com/expr-lang/expr.
//
// expr has no time limit. What could run long or build much is therefore refused when an
// expression is saved: predicates, let, ranges, patterns that are not literals or cost too
// much, long sources.
package condition
