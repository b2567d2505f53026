package javascript

import (
	"reflect"

	"github.com/dop251/goja"
)

// guardBuffers bounds what buffers hold together. A codec that names none of
// them has none.
func (r *realm) guardBuffers() {
	names := bufferNames()
	if !r.mentions(append(names, "Buffer", "buffer", "constructor")...) {
		return
	}
	left := float64(maxBuffers)
	for _, name := range names {
		wide := 1.0
		if v := r.object(name).Get("BYTES_PER_ELEMENT"); v != nil {
			wide = v.ToFloat()
		}
		r.guardConstructor(name, func(args []goja.Value) []goja.Value { return r.buffer(args, wide, &left) })
	}
	typed := r.object("Uint8Array").Prototype()
	r.install(typed, "from", r.from)
	proto := typed.Get("prototype").(*goja.Object)
	r.install(proto, "join", r.joins)
	_ = proto.Delete("toLocaleString")
	arrayJoin, _ := goja.AssertFunction(r.object("Array", "prototype").Get("join"))
	join := rethrow(arrayJoin)
	r.install(proto, "toString", func(_ native, call goja.FunctionCall) goja.Value { return r.joins(join, call) })
}

// buffer takes what a new buffer holds off what is left.
func (r *realm) buffer(args []goja.Value, wide float64, left *float64) []goja.Value {
	if len(args) == 0 {
		return args
	}
	count := 0.0
	obj, ok := args[0].(*goja.Object)
	switch {
	case !ok:
		count = max(args[0].ToNumber().ToFloat(), 0)
	case !isBuffer(obj):
		args = append([]goja.Value{r.walkable(obj)}, args[1:]...)
		count = float64(length(args[0].(*goja.Object)))
	}
	if *left -= count * wide; *left < 0 {
		r.stop("the buffers hold more than %d bytes", maxBuffers)
	}
	return args
}

// isBuffer reports whether an object is an ArrayBuffer, of which a typed array is a view.
func isBuffer(obj *goja.Object) bool {
	return obj.ExportType() == reflect.TypeFor[goja.ArrayBuffer]()
}

// guardConstructor puts a checked constructor in the place of one of the
// interpreter's, with the same prototype.
func (r *realm) guardConstructor(name string, check func([]goja.Value) []goja.Value) {
	inner := r.object(name)
	construct, ok := goja.AssertConstructor(inner)
	if !ok {
		return
	}
	var outer *goja.Object
	outer = r.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		target := call.NewTarget
		if target == nil || target == outer {
			target = inner
		}
		obj, err := construct(target, check(call.Arguments)...)
		if err != nil {
			panic(err)
		}
		return obj
	}).(*goja.Object)
	proto := inner.Get("prototype").(*goja.Object)
	_ = outer.DefineDataProperty("prototype", proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
	_ = outer.DefineDataProperty("name", r.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	for _, static := range []string{"BYTES_PER_ELEMENT", "isView"} {
		if v := inner.Get(static); v != nil {
			_ = outer.DefineDataProperty(static, v, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE)
		}
	}
	_ = outer.SetPrototype(inner.Prototype())
	_ = proto.DefineDataProperty("constructor", outer, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = r.vm.GlobalObject().DefineDataProperty(name, outer, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}
