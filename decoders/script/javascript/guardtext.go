package javascript

import (
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
)

// maxReplaced bounds what replace can make, in characters.
const maxReplaced = 1 << 22

// guardText guards what makes strings and what reads and writes JSON.
func (r *realm) guardText() {
	if r.mentions("raw", "repeat", "padStart", "padEnd", "concat", "replace", "replaceAll", "match", "matchAll", "search") {
		r.guardStrings()
	}
	if r.mentions("RegExp", "constructor", "compile", "replace", "replaceAll") {
		r.guardPatterns()
	}
	if r.mentions(catching) {
		r.install(r.object("Error", "prototype"), "toString", r.measured)
	}
	if r.mentions("parse", "stringify") {
		json := r.object("JSON")
		r.replace(json, "parse", r.parses)
		r.replace(json, "stringify", r.stringifies)
	}
}

// throwers are the names of what makes errors or hands them over, beside the syntax
// that does.
func throwers() []string {
	return []string{
		"Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError",
		"Promise", "then", "catch",
	}
}

// guardStrings guards what makes strings.
func (r *realm) guardStrings() {
	text := r.object("String")
	if r.mentions("raw") {
		_ = text.Delete("raw")
	}
	proto := text.Get("prototype").(*goja.Object)
	for _, name := range []string{"repeat", "padStart", "padEnd"} {
		r.replace(proto, name, r.lengthens(name == "repeat"))
	}
	r.replace(proto, "concat", r.appends)
	r.replace(proto, "replace", r.replaces)
	r.replace(proto, "replaceAll", r.replaces)
	for _, name := range []string{"match", "matchAll", "search"} {
		r.replace(proto, name, r.matches)
	}
}

// this is the string a method works on, made one once.
func (r *realm) this(v goja.Value) goja.Value {
	if goja.IsUndefined(v) || goja.IsNull(v) {
		return v
	}
	return r.str(v)
}

// str converts as String(v) does.
func (r *realm) str(v goja.Value) goja.String {
	if s, ok := v.ToString().(goja.String); ok {
		return s
	}
	return r.vm.ToValue(v.String()).(goja.String)
}

func size(v goja.Value) float64 {
	if s, ok := v.(goja.String); ok {
		return float64(s.Length())
	}
	return 0
}

func (r *realm) lengthens(times bool) guard {
	return func(inner native, call goja.FunctionCall) goja.Value {
		s, n := r.this(call.This), call.Argument(0).ToNumber()
		if times {
			r.checkString(n.ToFloat() * size(s))
		} else {
			r.checkString(n.ToFloat())
		}
		return inner(s, append([]goja.Value{n}, call.Arguments[min(1, len(call.Arguments)):]...)...)
	}
}

func (r *realm) appends(inner native, call goja.FunctionCall) goja.Value {
	s := r.this(call.This)
	total := size(s)
	args := make([]goja.Value, len(call.Arguments))
	for i, v := range call.Arguments {
		args[i] = r.str(v)
		total += size(args[i])
	}
	r.checkString(total)
	return inner(s, args...)
}

// measured checks what a function gave.
func (r *realm) measured(inner native, call goja.FunctionCall) goja.Value {
	v := inner(call.This, call.Arguments...)
	r.checkString(size(v))
	return v
}

// replaces is replace of a string.
func (r *realm) replaces(inner native, call goja.FunctionCall) goja.Value {
	s := r.this(call.This)
	return inner(s, call.Argument(0), r.replacement(s, call.Argument(1)))
}

// replacesMatches is replace of a regular expression.
func (r *realm) replacesMatches(inner native, call goja.FunctionCall) goja.Value {
	s := r.str(call.Argument(0))
	return inner(call.This, s, r.replacement(s, call.Argument(1)))
}

// replacement bounds what replaces each match.
func (r *realm) replacement(subject, v goja.Value) goja.Value {
	if f, ok := goja.AssertFunction(v); ok {
		total := 0.0
		return r.vm.ToValue(func(call goja.FunctionCall) goja.Value {
			s := r.str(rethrow(f)(goja.Undefined(), call.Arguments...))
			total += size(s)
			r.checkString(total)
			return s
		})
	}
	s := r.str(v)
	if (size(subject)+1)*(size(s)+1) > maxReplaced {
		r.stop("the strings given to replace are too long")
	}
	if size(s) > 0 && (strings.Contains(s.String(), "$`") || strings.Contains(s.String(), "$'")) {
		panic(r.vm.NewTypeError("$` and $' are not supported"))
	}
	return s
}

// matches are the methods that make a regular expression of a string.
func (r *realm) matches(inner native, call goja.FunctionCall) goja.Value {
	r.checkPattern(call.Argument(0))
	return inner(call.This, call.Arguments...)
}

func (r *realm) checkPattern(v goja.Value) {
	if size(v) > maxPattern {
		r.stop("a regular expression is longer than %d characters", maxPattern)
	}
	if obj, ok := v.(*goja.Object); ok && obj.ClassName() != "RegExp" {
		panic(r.vm.NewTypeError("a regular expression or a string is expected"))
	}
}

func (r *realm) guardPatterns() {
	r.guardConstructor("RegExp", func(args []goja.Value) []goja.Value {
		if len(args) > 0 {
			r.checkPattern(args[0])
		}
		return args
	})
	proto := r.object("RegExp", "prototype")
	_ = proto.Delete("compile")
	if inner, ok := goja.AssertFunction(proto.GetSymbol(goja.SymReplace)); ok {
		_ = proto.DefineDataPropertySymbol(goja.SymReplace, r.behind(r.replacesMatches, inner), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}

// parses refuses JSON that is nested deeper than the reader's stack should be.
func (r *realm) parses(inner native, call goja.FunctionCall) goja.Value {
	s := r.str(call.Argument(0))
	depth := 0
	for _, c := range []byte(s.String()) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNested {
			r.stop("the JSON is nested too deep")
		}
	}
	return inner(call.This, append([]goja.Value{s}, call.Arguments[min(1, len(call.Arguments)):]...)...)
}

func (r *realm) stringifies(inner native, call goja.FunctionCall) goja.Value {
	m := &measure{r: r}
	for _, v := range call.Arguments {
		m.value(v, 0)
	}
	v := inner(call.This, call.Arguments...)
	r.checkString(size(v))
	return v
}

// limitPatterns gives regular expressions that backtrack a time limit, at whose
// end they match nothing. The library holds it for the whole process and reads
// it whenever it compiles one, so it is set before the first.
var limitPatterns = sync.OnceFunc( //nolint:gochecknoglobals // as global as what it sets
	func() { regexp2.DefaultMatchTimeout = 100 * time.Millisecond })
