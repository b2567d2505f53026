package javascript

import (
	"strconv"

	"github.com/dop251/goja"
)

// guardLists guards Array, apply and the walk over a list.
func (r *realm) guardLists() {
	array := r.object("Array")
	proto := array.Get("prototype").(*goja.Object)
	for _, name := range []string{
		"every", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach", "includes", "indexOf",
		"lastIndexOf", "map", "reduce", "reduceRight", "slice", "some", "toReversed", "toSpliced", "with",
	} {
		r.replace(proto, name, r.reads)
	}
	for _, name := range []string{"copyWithin", "fill", "reverse", "shift", "splice", "unshift"} {
		r.replace(proto, name, r.changes)
	}
	r.replace(proto, "sort", r.sorts)
	r.replace(proto, "toSorted", r.sorts)
	r.replace(proto, "concat", r.concats)
	r.replace(proto, "flat", r.flattens)
	r.replace(proto, "flatMap", r.flatMaps)
	r.install(proto, "join", r.joins)
	if r.mentions("toLocaleString") {
		_ = proto.Delete("toLocaleString")
	}
	r.replace(array, "from", r.from)
	if r.mentions("apply") {
		r.replace(r.object("Function", "prototype"), "apply", r.applies)
	}
	if r.mentions(walking) {
		r.install(r.iteratorPrototype(proto), "next", r.nexts)
	}
}

// walkers are the names of what walks over a list, or leads to such a walk, beside
// the syntax that does.
func walkers() []string {
	return append([]string{
		"next", "iterator", "values", "keys", "entries", "from", "fromAsync", "fromEntries", "groupBy",
		"Map", "Set", "WeakMap", "WeakSet", "Promise", "AggregateError", "Buffer", "buffer",
	}, bufferNames()...)
}

// iteratorPrototype is the prototype of all iterators of lists.
func (r *realm) iteratorPrototype(proto *goja.Object) *goja.Object {
	values, _ := goja.AssertFunction(proto.Get("values"))
	return rethrow(values)(r.vm.NewArray()).(*goja.Object).Prototype()
}

// nexts ends a walk when the time is over: it may be the interpreter that
// walks, to spread a list whose length was set to billions.
func (r *realm) nexts(inner native, call goja.FunctionCall) goja.Value {
	r.checkTime()
	return inner(call.This)
}

func (r *realm) reads(inner native, call goja.FunctionCall) goja.Value {
	return inner(r.list(call.This), call.Arguments...)
}

func (r *realm) changes(inner native, call goja.FunctionCall) goja.Value {
	obj, ok := isList(call.This)
	if !ok {
		panic(r.vm.NewTypeError("only an array can be changed in this way"))
	}
	r.checkList(length(obj) + int64(len(call.Arguments)))
	return inner(obj, call.Arguments...)
}

// sorts looks at the time whenever it compares.
func (r *realm) sorts(inner native, call goja.FunctionCall) goja.Value {
	return r.changes(func(this goja.Value, args ...goja.Value) goja.Value {
		if len(args) == 0 || goja.IsUndefined(args[0]) {
			return inner(this, r.vm.ToValue(r.compares))
		}
		return inner(this, args...)
	}, call)
}

// compares is the order of a list that is sorted without a function.
func (r *realm) compares(call goja.FunctionCall) goja.Value {
	r.checkTime()
	return r.vm.ToValue(r.str(call.Argument(0)).CompareTo(r.str(call.Argument(1))))
}

func (r *realm) concats(inner native, call goja.FunctionCall) goja.Value {
	args := make([]goja.Value, len(call.Arguments))
	for i, v := range call.Arguments {
		args[i] = r.spreadable(v)
	}
	return inner(r.spreadable(r.list(call.This)), args...)
}

// spreadable keeps concat from walking over what only looks like a list.
func (r *realm) spreadable(v goja.Value) goja.Value {
	if obj, ok := isList(v); ok {
		r.checkList(length(obj))
	} else if obj, ok := v.(*goja.Object); ok {
		if s := obj.GetSymbol(goja.SymIsConcatSpreadable); s != nil && s.ToBoolean() {
			return r.list(obj)
		}
		return r.vm.NewArray(obj)
	}
	return v
}

func (r *realm) flattens(inner native, call goja.FunctionCall) goja.Value {
	list := r.list(call.This)
	(&measure{r: r}).value(list, 0)
	return inner(list, call.Arguments...)
}

func (r *realm) flatMaps(inner native, call goja.FunctionCall) goja.Value {
	f, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.vm.NewTypeError("flatMap wants a function"))
	}
	mapped := r.vm.ToValue(func(each goja.FunctionCall) goja.Value {
		v := rethrow(f)(call.Argument(1), each.Arguments...)
		if obj, ok := isList(v); ok {
			r.checkList(length(obj))
		}
		return v
	})
	return inner(r.list(call.This), mapped)
}

// joins is join with a sum of the lengths; texts of lists within lists come
// back to it.
func (r *realm) joins(inner native, call goja.FunctionCall) goja.Value {
	r.checkTime()
	list, ok := r.list(call.This).(*goja.Object)
	if r.depth++; r.depth > maxNested {
		r.stop("lists are nested too deep to be written")
	}
	defer func() { r.depth-- }()
	if !ok {
		return inner(call.This, call.Arguments...)
	}
	separator := r.vm.ToValue(",").(goja.String)
	if v := call.Argument(0); !goja.IsUndefined(v) {
		separator = r.str(v)
	}
	return inner(r.texts(list, separator.Length()), separator)
}

// texts are a list's elements as strings.
func (r *realm) texts(list *goja.Object, separator int) goja.Value {
	n := r.checkList(length(list))
	items := make([]any, n)
	total := float64(n) * float64(separator)
	r.checkString(total)
	for i := range items {
		v := list.Get(strconv.Itoa(i))
		if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
			items[i] = ""
			continue
		}
		s := r.str(v)
		total += float64(s.Length())
		r.checkString(total)
		items[i] = s
	}
	return r.vm.NewArray(items...)
}

// from walks only over what iterates or has a checked length.
func (r *realm) from(inner native, call goja.FunctionCall) goja.Value {
	if len(call.Arguments) == 0 {
		return inner(call.This)
	}
	args := append([]goja.Value{r.walkable(call.Arguments[0])}, call.Arguments[1:]...)
	return inner(call.This, args...)
}

func (r *realm) walkable(v goja.Value) goja.Value {
	obj, ok := v.(*goja.Object)
	if !ok {
		return v
	}
	if s := obj.GetSymbol(goja.SymIterator); s == nil || goja.IsUndefined(s) || goja.IsNull(s) {
		return r.list(obj)
	}
	if _, ok := isList(obj); ok {
		r.checkList(length(obj))
	}
	return v
}

func (r *realm) applies(inner native, call goja.FunctionCall) goja.Value {
	if obj, ok := call.Argument(1).(*goja.Object); ok {
		return inner(call.This, call.Argument(0), r.list(obj))
	}
	return inner(call.This, call.Arguments...)
}
