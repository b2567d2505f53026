package javascript

import (
	"fmt"
	"strconv"

	"github.com/dop251/goja"
)

const (
	// maxString is the greatest length of a string, in UTF-16 units.
	maxString = 1 << 18
	// maxList is the greatest length of a list that a function walks over.
	maxList = 1 << 16
	// maxBuffers is how many bytes all buffers of a call may hold.
	maxBuffers = 4 << 20
	// maxVisits and maxNested bound the values given to JSON.stringify and
	// flat, maxText the strings among them.
	maxVisits = 50_000
	maxNested = 100
	maxText   = 1 << 20
)

// The interpreter looks at its time limit between instructions, and a function
// of its own is one instruction. So those that could make or walk more than
// what they are given stand behind a guard, which checks the size first. They
// are installed before the codec's code runs and hold the only way to what
// they guard.
func (r *realm) guard() {
	_ = r.vm.GlobalObject().DefineDataProperty(boundName, r.vm.ToValue(r.bound), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	_ = r.vm.GlobalObject().DefineDataProperty(keyName, r.vm.ToValue(r.key), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	r.guardLists()
	r.guardText()
	r.guardBuffers()
}

// mentions reports whether a call needs the guard of a name: to install all costs
// more than most codecs do. A codec reaches a function by a name that its
// source writes out, or by one it computes, which goes through key.
func (r *realm) mentions(names ...string) bool {
	for _, name := range names {
		if r.need.known != nil {
			r.need.known[name] = true
		}
		if r.need.all || r.need.names[name] {
			return true
		}
	}
	return false
}

// key is the guard around computed names. One that names what is guarded, and
// that the source does not write out, ends the call; it is begun anew with all
// guards.
func (r *realm) key(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	if r.need.all || goja.IsNumber(v) {
		return v
	}
	_, isSymbol := v.(*goja.Symbol)
	if obj, ok := v.(*goja.Object); ok {
		v = r.str(obj)
	}
	if name := v.String(); isSymbol || r.need.guarded[name] && !r.need.names[name] {
		r.again.Store(true)
		r.stop("a guarded function is named")
	}
	return v
}

// native is a function of the interpreter that stands behind a guard, and guard checks
// a call of it.
type (
	native func(this goja.Value, args ...goja.Value) goja.Value
	guard  func(inner native, call goja.FunctionCall) goja.Value
)

// replace puts a guard in the place of a method; what is not there stays away.
func (r *realm) replace(holder *goja.Object, name string, g guard) {
	if r.mentions(name) {
		r.install(holder, name, g)
	}
}

// install is replace for what can be reached without its name.
func (r *realm) install(holder *goja.Object, name string, g guard) {
	if inner, ok := goja.AssertFunction(holder.Get(name)); ok {
		_ = holder.DefineDataProperty(name, r.behind(g, inner), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}

// behind is a function of the interpreter behind a guard.
func (r *realm) behind(g guard, f goja.Callable) goja.Value {
	inner := rethrow(f)
	return r.vm.ToValue(func(call goja.FunctionCall) goja.Value { return g(inner, call) })
}

// rethrow lets an exception pass through Go as an exception.
func rethrow(inner goja.Callable) native {
	return func(this goja.Value, args ...goja.Value) goja.Value {
		v, err := inner(this, args...)
		if err != nil {
			panic(err)
		}
		return v
	}
}

func (r *realm) object(path ...string) *goja.Object {
	obj := r.vm.GlobalObject()
	for _, name := range path {
		obj = obj.Get(name).(*goja.Object)
	}
	return obj
}

// stop ends the call. A codec can catch the exception, but its next
// instruction is its last.
func (r *realm) stop(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	r.vm.Interrupt(reason)
	panic(r.vm.NewTypeError("%s", reason))
}

// checkTime ends what the interpreter itself repeats when the time is over.
func (r *realm) checkTime() {
	if r.expired.Load() {
		panic(r.vm.NewTypeError("the codec did not end in its time"))
	}
}

func (r *realm) checkString(length float64) {
	if length > maxString {
		r.stop("a string would be longer than %d characters", maxString)
	}
}

// bound is the guard around what makes strings grow.
func (r *realm) bound(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	if s, ok := v.(goja.String); ok {
		r.checkString(float64(s.Length()))
	}
	return v
}

func (r *realm) checkList(length int64) int {
	if length > maxList {
		r.stop("a list is longer than %d", maxList)
	}
	return int(max(length, 0))
}

func isList(v goja.Value) (*goja.Object, bool) {
	obj, ok := v.(*goja.Object)
	return obj, ok && obj.ClassName() == "Array"
}

func length(obj *goja.Object) int64 {
	if v := obj.Get("length"); v != nil {
		return v.ToInteger()
	}
	return 0
}

// list gives a list whose length is known not to change while a function walks
// over it: a true one as it is, of anything else a copy.
func (r *realm) list(v goja.Value) goja.Value {
	if obj, ok := isList(v); ok {
		r.checkList(length(obj))
		return obj
	}
	switch v := v.(type) {
	case goja.String:
		items := make([]any, r.checkList(int64(v.Length())))
		for i := range items {
			items[i] = v.Substring(i, i+1)
		}
		return r.vm.NewArray(items...)
	case *goja.Object:
		items := make([]any, r.checkList(length(v)))
		for i := range items {
			items[i] = v.Get(strconv.Itoa(i))
		}
		return r.vm.NewArray(items...)
	}
	return v
}

// measure counts what a function that goes through nested values would visit.
type measure struct {
	r            *realm
	visits, text int
}

func (m *measure) value(v goja.Value, depth int) {
	m.r.checkTime()
	m.visits++
	if m.visits > maxVisits || depth > maxNested || m.text > maxText {
		m.r.stop("the values given to a function are too many, too long or nested too deep")
	}
	switch v := v.(type) {
	case goja.String:
		m.text += v.Length()
	case *goja.Object:
		if obj, ok := isList(v); ok {
			for i := range m.r.checkList(length(obj)) {
				m.value(obj.Get(strconv.Itoa(i)), depth+1)
			}
			return
		}
		for _, name := range v.Keys() {
			m.text += len(name)
			m.value(v.Get(name), depth+1)
		}
	}
}
