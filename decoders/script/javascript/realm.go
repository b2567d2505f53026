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
	// maxLines and maxLineBytes limit the number and the length of the lines that a codec writes
	// to its console.
	maxLines     = 10
	maxLineBytes = 200
)

// The parts of a realm that are written in JavaScript.
var (
	//go:embed prelude/date.js
	dateSource string
	//go:embed prelude/buffer.js
	bufferSource string
)

// features has the optional parts of a realm. Each part takes time, so a realm has a part only
// if the source contains a word that needs it.
type features struct {
	date, buffer, module, console bool
}

func featuresOf(source string) features {
	contains := func(name string) bool { return strings.Contains(source, name) }
	return features{date: contains("Date"), buffer: contains("Buffer") || contains("buffer"), console: contains("console"), module: contains("export") || contains("require")}
}

// preludes returns the programs that run before the codec.
func preludes(enabled features) ([]*goja.Program, error) {
	var programs []*goja.Program
	for _, p := range []struct {
		name, source string
		used         bool
	}{{"date.js", dateSource, enabled.date}, {"buffer.js", bufferSource, enabled.buffer}} {
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

// realm is the JavaScript environment of one call.
type realm struct {
	vm    *goja.Runtime
	frame *decoders.Frame
	// variables are the names that the codec declares at its top level.
	variables []string
	// lines are the lines that the codec has written to its console.
	lines []string
	// dateClass and bufferClass are the original constructors, which the codec may replace.
	// bufferClass is nil if the codec does not use it.
	dateClass   *goja.Object
	bufferClass goja.Value
}

func newRealm(f *decoders.Frame, enabled features) *realm {
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
	if enabled.console {
		r.defineConsole()
	}
	if enabled.module {
		r.defineModule()
	}
	return r
}

// frameTime returns the time that the codec's clock shows: the time of the frame or, for a frame
// without a time, the start of 1970. Frames from package iot always have NetworkTime.
func frameTime(f *decoders.Frame) time.Time {
	switch {
	case !f.NetworkTime.IsZero():
		return f.NetworkTime.UTC()
	case !f.SampleTime.IsZero():
		return f.SampleTime.UTC()
	}
	return time.Unix(0, 0).UTC()
}

// defineConsole defines a console whose lines become warnings.
func (r *realm) defineConsole() {
	console := r.vm.NewObject()
	write := r.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		if len(r.lines) >= maxLines {
			return goja.Undefined()
		}
		line := "console:"
		for _, v := range call.Arguments {
			if len(line) < maxLineBytes {
				line += " " + v.String()
			}
		}
		r.lines = append(r.lines, strings.ToValidUTF8(decoders.Clip(line, maxLineBytes), ""))
		return goja.Undefined()
	})
	for _, name := range []string{"log", "info", "warn", "error", "debug", "trace"} {
		_ = console.Set(name, write)
	}
	_ = r.vm.Set("console", console)
}

// defineModule defines the globals of a CommonJS module.
func (r *realm) defineModule() {
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
		_ = buffer.Set("Buffer", r.bufferClass)
		return buffer
	})
}
