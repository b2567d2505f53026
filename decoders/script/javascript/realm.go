package javascript

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
)

const (
	// maxBytes is the largest length of a payload.
	maxBytes = 4096
	// maxCalls is the largest depth of calls.
	maxCalls = 400
	// maxLines and maxLine bound what is kept of a codec's console.
	maxLines = 10
	maxLine  = 200
)

// The parts of a realm that are written in JavaScript themselves.
var (
	//go:embed prelude/date.js
	dateSource string
	//go:embed prelude/buffer.js
	bufferSource string
)

// uses are the parts of a realm that cost something and that a source does not
// get unless it holds their name.
type uses struct {
	date, buffer, module, console bool
}

func usesOf(source string) uses {
	fn := func(name string) bool { return strings.Contains(source, name) }
	return uses{
		date: fn("Date"), buffer: fn("Buffer") || fn("buffer"), console: fn("console"), module: fn("export") || fn("require"),
	}
}

// preludes are the programs that run before the codec.
func preludes(u uses) ([]*goja.Program, error) {
	var programs []*goja.Program
	for _, p := range []struct {
		name, source string
		used         bool
	}{{"date.js", dateSource, u.date}, {"buffer.js", bufferSource, u.buffer}} {
		if !p.used {
			continue
		}
		code, err := goja.Compile(p.name, p.source, true)
		if err != nil {
			return nil, fmt.Errorf("javascript: %s: %w", p.name, err)
		}
		programs = append(programs, code)
	}
	return programs, nil
}

// realm is the world of one call.
type realm struct {
	vm    *goja.Runtime
	frame *decoders.Frame
	// variables are the names that the codec declares at its top level.
	variables []string
	// lines are the codec's writes to its console.
	lines []string
	// date and shim (Buffer) are the constructors before the codec could change
	// them; shim is nil when it is not used.
	date *goja.Object
	shim goja.Value
}

func newRealm(f *decoders.Frame, u uses) *realm {
	r := &realm{vm: goja.New(), frame: f}
	r.vm.SetMaxCallStackSize(maxCalls)
	r.vm.SetTimeSource(func() time.Time { return frameTime(f) })
	var source *rand.Rand // the same numbers for the same frame
	r.vm.SetRandSource(func() float64 {
		if source == nil {
			h := fnv.New64a()
			h.Write(f.Payload)
			source = rand.New(rand.NewPCG(h.Sum64(), uint64(f.FCnt)))
		}
		return source.Float64()
	})
	if u.console {
		r.console()
	}
	if u.module {
		r.module()
	}
	return r
}

// frameTime is the clock of a call. The time of a frame that has none is the
// beginning of 1970, for which the receipt stands in later.
func frameTime(f *decoders.Frame) time.Time {
	switch {
	case !f.NetworkTime.IsZero():
		return f.NetworkTime.UTC()
	case !f.SampleTime.IsZero():
		return f.SampleTime.UTC()
	}
	return time.Unix(0, 0).UTC()
}

// console keeps what is written as warnings, as much as fits.
func (r *realm) console() {
	console := r.vm.NewObject()
	write := r.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		if len(r.lines) >= maxLines {
			return goja.Undefined()
		}
		line := "console:"
		for _, v := range call.Arguments {
			if len(line) < maxLine {
				line += " " + v.String()
			}
		}
		r.lines = append(r.lines, strings.ToValidUTF8(decoders.Clip(line, maxLine), ""))
		return goja.Undefined()
	})
	for _, name := range []string{"log", "info", "warn", "error", "debug", "trace"} {
		_ = console.Set(name, write)
	}
	_ = r.vm.Set("console", console)
}

// module gives a CommonJS module what it expects to find.
func (r *realm) module() {
	module, exports := r.vm.NewObject(), r.vm.NewObject()
	_ = module.Set("exports", exports)
	_ = r.vm.Set("module", module)
	_ = r.vm.Set("exports", exports)
	_ = r.vm.Set("require", func(call goja.FunctionCall) goja.Value {
		name := call.Argument(0).String()
		if name != "buffer" && name != "node:buffer" {
			panic(r.vm.NewTypeError("require: there is no module %s; only buffer can be required", clipText(name)))
		}
		buffer := r.vm.NewObject()
		_ = buffer.Set("Buffer", r.shim)
		return buffer
	})
}
