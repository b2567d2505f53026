// Package condition compiles and evaluates the expressions of relays and rules: the filters of
// relays, the conditions of rules and the bodies of their actions. Their language is that of
// github.com/expr-lang/expr.
//
// expr has no time limit. Expressions that could run long or use much memory are therefore refused at
// compilation: predicates, let, ranges, patterns that are not literals or cost too much, long
// sources, and, in filters, the operators +, *, ** and ^.
package condition
