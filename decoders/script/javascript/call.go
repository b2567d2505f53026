package javascript

import (
	"slices"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
)

// entryFunction is the codec's decoding function.
type entryFunction struct {
	name string
	call goja.Callable
}

// findEntry finds the codec's decoding function. It prefers the standard form to the older ones.
func (r *realm) findEntry(aliases map[string]string) (entryFunction, error) {
	names := []string{"decodeUplink", "Decode", "Decoder"}
	for _, name := range names {
		if f, ok := r.findFunction(name, aliases); ok {
			return entryFunction{name, f}, nil
		}
	}
	for _, v := range r.exportedValues(aliases) {
		if f, ok := goja.AssertFunction(v); ok {
			return entryFunction{"decodeUplink", f}, nil
		}
	}
	for _, name := range names {
		if f, ok := r.findWrapped(name, aliases); ok {
			return entryFunction{name, f}, nil
		}
	}
	return entryFunction{}, newError("", "none of the functions decodeUplink, Decode and Decoder is defined")
}

// findFunction finds a function by its name: an alias, a global function or a member of the
// exports of a module.
func (r *realm) findFunction(name string, aliases map[string]string) (goja.Callable, bool) {
	if local, ok := aliases[name]; ok {
		if f, ok := goja.AssertFunction(r.vm.Get(local)); ok {
			return f, true
		}
	}
	if f, ok := goja.AssertFunction(r.vm.Get(name)); ok {
		return f, true
	}
	for _, v := range r.exportedValues(aliases) {
		if obj, ok := v.(*goja.Object); ok {
			if f, ok := boundMethod(obj, name); ok {
				return f, true
			}
		}
	}
	return nil, false
}

// findWrapped finds a function by its name in objects that a module exports or that the codec
// declares: exports.driver = {decodeUplink}, or var driver = {decodeUplink}.
func (r *realm) findWrapped(name string, aliases map[string]string) (goja.Callable, bool) {
	var wrappers []*goja.Object
	for _, v := range r.exportedValues(aliases) {
		if obj, ok := v.(*goja.Object); ok {
			wrappers = append(wrappers, membersOf(obj)...)
		}
	}
	for _, variable := range r.variables {
		if obj, ok := r.vm.Get(variable).(*goja.Object); ok {
			wrappers = append(append(wrappers, obj), membersOf(obj)...)
		}
	}
	for _, obj := range wrappers {
		if f, ok := boundMethod(obj, name); ok {
			return f, true
		}
	}
	return nil, false
}

// membersOf returns the members of an object that are objects with a common name of a wrapper.
func membersOf(obj *goja.Object) []*goja.Object {
	var members []*goja.Object
	for _, name := range []string{"driver", "codec", "decoder", "default", "exports", "Driver", "Codec"} {
		if member, ok := obj.Get(name).(*goja.Object); ok {
			members = append(members, member)
		}
	}
	return members
}

// boundMethod returns a method of an object, bound to the object.
func boundMethod(obj *goja.Object, name string) (goja.Callable, bool) {
	f, ok := goja.AssertFunction(obj.Get(name))
	if !ok {
		return nil, false
	}
	return func(_ goja.Value, args ...goja.Value) (goja.Value, error) { return f(obj, args...) }, true
}

// exportedValues returns the values that a CommonJS or ES module exports.
func (r *realm) exportedValues(aliases map[string]string) []goja.Value {
	var values []goja.Value
	if module, ok := r.vm.Get("module").(*goja.Object); ok {
		values = append(values, module.Get("exports"))
	}
	if exports, ok := r.vm.Get("exports").(*goja.Object); ok {
		values = append(values, exports, exports.Get(defaultMember))
	}
	if local, ok := aliases["default"]; ok {
		values = append(values, r.vm.Get(local))
	}
	return slices.DeleteFunc(values, func(v goja.Value) bool { return v == nil })
}

// decode calls the codec's decoding function and, if there is one, normalizeUplink.
func (r *realm) decode(aliases map[string]string) (decoders.Result, error) {
	var res decoders.Result
	e, err := r.findEntry(aliases)
	if err != nil {
		return res, err
	}
	v, err := e.call(goja.Undefined(), r.arguments(e.name)...)
	if err != nil {
		return res, r.failure(e.name, err)
	}
	export := exporter{r: r}
	data, err := export.readEnvelope(e.name, v, &res)
	if err != nil || data == nil {
		return res, err
	}
	value := export.value(data, 0)
	if export.limitError != "" {
		return res, newError(e.name, export.limitError)
	}
	values.AppendTimed(&res, "", value)
	f, ok := r.findFunction("normalizeUplink", aliases)
	if !ok {
		f, ok = r.findWrapped("normalizeUplink", aliases)
	}
	if ok && e.name == "decodeUplink" {
		r.normalize(f, data, &res)
	}
	return res, nil
}

// arguments returns the arguments of the decoding function with a name.
func (r *realm) arguments(name string) []goja.Value {
	f := r.frame
	items := make([]any, len(f.Payload))
	for i, b := range f.Payload {
		items[i] = int(b)
	}
	bytes, port := r.vm.NewArray(items...), r.vm.ToValue(f.FPort)
	switch name {
	case "Decode":
		return []goja.Value{port, bytes, r.toJS(emptyIfNil(f.Params))}
	case "Decoder":
		return []goja.Value{bytes, port, r.toJS(map[string]any{
			"type": "uplink", "dev_eui": f.Identifier, "name": f.Name, "fcnt": f.FCnt, "port": f.FPort,
			"payload_size": len(f.Payload), "reported_at": frameTime(f).UnixMilli(),
		})}
	}
	input := r.vm.NewObject()
	_ = input.Set("bytes", bytes)
	_ = input.Set("fPort", port)
	if date, err := r.vm.New(r.dateClass, r.vm.ToValue(frameTime(f).UnixMilli())); err == nil {
		_ = input.Set("recvTime", date)
	}
	_ = input.Set("variables", r.toJS(emptyIfNil(f.Params)))
	return []goja.Value{input}
}

func emptyIfNil(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// toJS copies a Go value to JavaScript, so that a codec cannot modify shared data.
func (r *realm) toJS(v any) goja.Value {
	switch v := v.(type) {
	case map[string]any:
		obj := r.vm.NewObject()
		for name, x := range v {
			_ = obj.Set(name, r.toJS(x))
		}
		return obj
	case []any:
		items := make([]any, len(v))
		for i, x := range v {
			items[i] = r.toJS(x)
		}
		return r.vm.NewArray(items...)
	case nil:
		return goja.Null()
	case string, bool, int, int64, float64:
		return r.vm.ToValue(v)
	}
	return goja.Undefined()
}
