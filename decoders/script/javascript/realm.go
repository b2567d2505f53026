package javascript

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
	"github.com/penstock/penstock/decoders"
)

const (
	// maxBytes is how long a payload may be.
	maxBytes = 4096
	// maxCalls is how deep functions may call one another.
	maxCalls = 400
	// maxLines and maxLine bound what is kept of a codec's console.
	maxLines = 10
	maxLine  = 200
)

// The parts of a realm that are written in JavaScript themselves.
var (
	//go:embed prelude/refuse.js
	refuseSource string
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
	has := func(name string) bool { return strings.Contains(source, name) }
	return uses{
		date: has("Date"), buffer: has("Buffer") || has("buffer"), console: has("console"), module: has("export") || has("require"),
	}
}

const (
	// refusing is the prelude that only some codecs need.
	refusing = "refuse.js"
	// late is the prelude that works with guarded functions.
	late = "buffer.js"
)

// need is the set of guards that a realm gets.
type need struct {
	all   bool
	names map[string]bool // those that the source writes out
	// guarded are all names that there are guards for.
	guarded map[string]bool
	// known collects them.
	known map[string]bool
}

// guardedNames returns the names of all guards.
func guardedNames() map[string]bool {
	n := need{all: true, known: map[string]bool{}}
	for _, names := range [][]string{refusedNames(), {"RegExp", "compile", "replaceAll"}, bufferNames(), walkers(), throwers()} {
		for _, name := range names {
			n.known[name] = true
		}
	}
	newRealm(&decoders.Frame{}, uses{}, n).guard()
	return n.known
}

// bufferNames are the constructors of buffers.
func bufferNames() []string {
	return []string{
		"ArrayBuffer", "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array",
		"Int32Array", "Uint32Array", "Float32Array", "Float64Array",
	}
}

// refusedNames are those that lead to what refuse.js takes away, and those
// that lead to any function by a name that is text.
func refusedNames() []string {
	return []string{
		"constructor", "eval", "Function", "Proxy", "Reflect", "BigInt", "BigInt64Array", "BigUint64Array", "WeakRef",
		"getBigInt64", "getBigUint64", "setBigInt64", "setBigUint64",
		"getOwnPropertyDescriptor", "getOwnPropertyDescriptors", "__lookupGetter__", "__lookupSetter__",
	}
}

type prelude struct {
	name string
	code *goja.Program
}

// preludes are the programs that run before the codec.
func preludes(u uses) ([]prelude, error) {
	var out []prelude
	for _, p := range []struct {
		name, source string
		used         bool
	}{{refusing, refuseSource, true}, {"date.js", dateSource, u.date}, {late, bufferSource, u.buffer}} {
		if !p.used {
			continue
		}
		code, err := goja.Compile(p.name, p.source, true)
		if err != nil {
			return nil, fmt.Errorf("javascript: %s: %w", p.name, err)
		}
		out = append(out, prelude{p.name, code})
	}
	return out, nil
}

// realm is the world of one call.
type realm struct {
	vm      *goja.Runtime
	frame   *decoders.Frame
	uses    uses
	expired atomic.Bool
	need    need
	// again is set if the call needs all guards.
	again atomic.Bool
	// lines are the codec's writes to its console.
	lines []string
	// depth is how deep lists are within one another that join is writing.
	depth int
	// date and shim (Buffer) are the constructors before the codec could change
	// them; shim is nil when it was not used.
	date *goja.Object
	shim goja.Value
}

func newRealm(f *decoders.Frame, u uses, n need) *realm {
	r := &realm{vm: goja.New(), frame: f, uses: u, need: n}
	r.vm.SetMaxCallStackSize(maxCalls)
	r.vm.SetTimeSource(func() time.Time { return frameTime(f) })
	r.vm.SetRandSource(random(f))
	if u.console {
		r.console()
	}
	if u.module {
		r.module()
	}
	return r
}

// prepare runs the preludes and puts the guards between them.
func (r *realm) prepare(all []prelude) error {
	installed := false
	for _, p := range all {
		if p.name == refusing && !r.mentions(refusedNames()...) {
			continue
		}
		if p.name == late {
			r.guard()
			installed = true
		}
		if _, err := r.vm.RunProgram(p.code); err != nil {
			return r.failure("", err)
		}
	}
	if !installed {
		r.guard()
	}
	r.date, r.shim = r.object("Date"), r.vm.Get("Buffer")
	return nil
}

// expire ends the call at its next instruction; the codec cannot catch it.
func (r *realm) expire(reason string) {
	r.expired.Store(true)
	r.vm.Interrupt(reason)
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

// random gives the same numbers for the same frame.
func random(f *decoders.Frame) goja.RandSource {
	var source *rand.Rand
	return func() float64 {
		if source == nil {
			h := fnv.New64a()
			h.Write(f.Payload)
			source = rand.New(rand.NewPCG(h.Sum64(), uint64(f.FCnt)))
		}
		return source.Float64()
	}
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
		if len(line) > maxLine {
			line = line[:maxLine] + "…"
		}
		r.lines = append(r.lines, strings.ToValidUTF8(line, ""))
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
