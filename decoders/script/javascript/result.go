package javascript

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
)

const (
	// maxValues, maxNesting and maxChars limit the result of a codec.
	maxValues  = 20_000
	maxNesting = 32
	maxChars   = 256 << 10
	// maxNotes is the largest number of errors, and of warnings, of a codec.
	maxNotes = 20
)

// exporter copies values from a realm. Reading them may run code of the codec, within the
// time limit of the call.
type exporter struct {
	r             *realm
	values, chars int
	limitError    string // the exceeded limit, or ""
}

// readEnvelope returns the data of {data, errors, warnings}, or v itself for the older forms. It
// adds the errors and warnings to res. A nil value without an error means no readings.
func (e *exporter) readEnvelope(name string, v goja.Value, res *decoders.Result) (goja.Value, error) {
	obj, ok := v.(*goja.Object)
	if !ok || obj.ClassName() == "Function" {
		return nil, newError(name, "did not return an object")
	}
	parts := map[string]goja.Value{}
	for _, part := range []string{"data", "errors", "warnings"} {
		if p := obj.Get(part); p != nil && !goja.IsUndefined(p) {
			parts[part] = p
		}
	}
	if name == "Decode" || name == "Decoder" || len(parts) == 0 {
		return obj, nil
	}
	res.Errors = append(res.Errors, e.notes(parts["errors"])...)
	res.Warnings = append(res.Warnings, e.notes(parts["warnings"])...)
	data := parts["data"]
	switch _, isObject := data.(*goja.Object); {
	case isObject:
		return data, nil
	case data != nil && !goja.IsNull(data):
		return nil, newError(name, "returned data that is not an object")
	case len(res.Errors) > 0:
		return nil, newError(name, clipText(res.Errors[0]))
	}
	return nil, nil
}

// notes returns the errors or warnings in v, which is a list of texts or one text.
func (e *exporter) notes(v goja.Value) []string {
	var texts []string
	switch v := v.(type) {
	case nil:
	case *goja.Object:
		for i := range min(length(v), maxNotes) {
			if value := v.Get(strconv.FormatInt(i, 10)); value != nil {
				texts = append(texts, clipText(value.String()))
			}
		}
	default:
		if goja.IsString(v) && v.String() != "" {
			texts = []string{clipText(v.String())}
		}
	}
	return texts
}

// value copies one value. It returns nil for undefined, null, NaN and functions.
func (e *exporter) value(v goja.Value, depth int) any {
	if e.values++; e.values > maxValues {
		e.limitError = fmt.Sprintf("returned more than %d values", maxValues)
	}
	if depth > maxNesting {
		e.limitError = fmt.Sprintf("returned values that are nested deeper than %d, or within themselves", maxNesting)
	}
	if e.limitError != "" || v == nil {
		return nil
	}
	if obj, ok := v.(*goja.Object); ok {
		return e.object(obj, depth)
	}
	if s, ok := v.(goja.String); ok {
		if e.chars += s.Length(); e.chars > maxChars {
			e.limitError = fmt.Sprintf("returned more than %d characters", maxChars)
			return nil
		}
		return s.String()
	}
	switch v := v.Export().(type) {
	case float64:
		if math.IsNaN(v) {
			return nil
		}
		return v
	case int64, bool:
		return v
	}
	return nil
}

func (e *exporter) object(obj *goja.Object, depth int) any {
	switch obj.ClassName() {
	case "Function":
		return nil
	case "Array":
		return e.list(obj, depth)
	case "Date":
		if t, ok := obj.Export().(time.Time); ok && !t.IsZero() {
			return t.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return nil
	case "Number", "String", "Boolean":
		return e.value(e.r.vm.ToValue(obj.Export()), depth+1)
	}
	// Typed arrays are lists. ExportType does not copy the object as Export would.
	if t := obj.ExportType(); t != nil && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Interface {
		return e.list(obj, depth)
	}
	values := map[string]any{}
	for _, name := range obj.Keys() {
		if e.chars += len(name); e.chars > maxChars {
			e.limitError = fmt.Sprintf("returned more than %d characters", maxChars)
		}
		if e.limitError != "" {
			break
		}
		if v := e.value(obj.Get(name), depth+1); v != nil {
			values[name] = v
		}
	}
	return values
}

func (e *exporter) list(obj *goja.Object, depth int) any {
	n := length(obj)
	if n > maxValues {
		e.limitError = fmt.Sprintf("returned more than %d values", maxValues)
		return nil
	}
	values := make([]any, n)
	for i := range values {
		if values[i] = e.value(obj.Get(strconv.Itoa(i)), depth+1); e.limitError != "" {
			return nil
		}
	}
	return values
}

func length(obj *goja.Object) int64 {
	if v := obj.Get("length"); v != nil {
		return v.ToInteger()
	}
	return 0
}
