package javascript

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
)

const (
	format = "javascript"
	// sourceName is the file name of the codec in the interpreter's stack traces.
	sourceName = "codec"
)

// Codec is a compiled source. It is safe for concurrent use.
type Codec struct {
	code     *goja.Program
	preludes []*goja.Program
	features features
	// aliases maps the names that an ES module exports to the names of its functions.
	aliases map[string]string
	// variables are the names of the variables at the top level of the source.
	variables []string
}

// Compile parses and compiles a source without running it. The
// error is a *decoders.Error whose reason names line and column.
func Compile(source string) (*Codec, error) {
	module, err := parse(source)
	if err != nil {
		return nil, err
	}
	code, err := goja.CompileAST(module.tree, false)
	if err != nil {
		return nil, compileError(err)
	}
	c := &Codec{code: code, features: featuresOf(source), aliases: module.aliases, variables: variablesOf(module.tree)}
	c.preludes, err = preludes(c.features)
	return c, err
}

// Check runs the top level once. It returns an error if that fails or if there is no
// decoding function.
func (c *Codec) Check(i *Interrupter) error {
	_, err := c.call(&decoders.Frame{}, i, func(r *realm) (decoders.Result, error) {
		_, err := r.findEntry(c.aliases)
		return decoders.Result{}, err
	})
	return err
}

// Decode runs the codec on a frame without time and memory limits. It implements
// decoders.Decoder for trusted sources.
func (c *Codec) Decode(f *decoders.Frame) (decoders.Result, error) {
	return c.DecodeUntil(f, &Interrupter{})
}

// DecodeUntil runs the codec on a frame until the interrupter ends the call. The Result has
// the errors and warnings that the codec returns. The error is an exception, a limit, or
// the reason of the interrupter.
func (c *Codec) DecodeUntil(f *decoders.Frame, i *Interrupter) (decoders.Result, error) {
	switch {
	case f.Encrypted:
		return decoders.Result{}, newError("payload", "is encrypted")
	case len(f.Payload) > maxBytes:
		return decoders.Result{}, newError("payload", fmt.Sprintf("is longer than %d bytes", maxBytes))
	}
	return c.call(f, i, func(r *realm) (decoders.Result, error) { return r.decode(c.aliases) })
}

// Interrupter ends a call from another goroutine. It can be used for
// one call at a time.
type Interrupter struct {
	vm    atomic.Pointer[goja.Runtime]
	fired atomic.Bool
}

// Interrupt ends the call in progress before its next instruction. It returns false if there is
// no call. The codec cannot catch the interruption. A built-in function is one
// instruction.
func (i *Interrupter) Interrupt(reason string) bool {
	vm := i.vm.Load()
	if vm == nil {
		return false
	}
	i.fired.Store(true)
	vm.Interrupt(reason)
	return true
}

// call runs the codec's top level in a new realm, and then calls run. A panic of the
// interpreter becomes an error of this call.
func (c *Codec) call(f *decoders.Frame, i *Interrupter, run func(*realm) (decoders.Result, error)) (res decoders.Result, err error) {
	r := newRealm(f, c.features)
	r.variables = c.variables
	i.fired.Store(false)
	i.vm.Store(r.vm)
	defer func() {
		if x := recover(); x != nil {
			// An exception of a built-in function has a stack; other panics are faults of
			// the interpreter.
			var exception interface{ Stack() []goja.StackFrame }
			if thrown, ok := x.(error); ok && errors.As(thrown, &exception) {
				err = r.failure("", thrown)
			} else {
				err = newError("", clipText(fmt.Sprintf("the interpreter failed: %v", x)))
			}
		}
		i.vm.Store(nil)
		res.LimitExceeded = i.fired.Load()
	}()
	for _, prelude := range c.preludes {
		if _, err := r.vm.RunProgram(prelude); err != nil {
			return res, r.failure("", err)
		}
	}
	r.dateClass, r.bufferClass = r.vm.Get("Date").(*goja.Object), r.vm.Get("Buffer")
	if _, err := r.vm.RunProgram(c.code); err != nil {
		return res, r.failure("", err)
	}
	res, err = run(r)
	res.Warnings = append(res.Warnings, r.lines...)
	return res, err
}

// maxReason is the largest length of a codec's message in an error, in bytes.
const maxReason = 500

func newError(field, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: -1, Reason: reason}
}

// errorAt returns an error with a position in the source, line and column from 1.
func errorAt(line, column int, reason string) error {
	return newError("", fmt.Sprintf("line %d, column %d: %s", line, column, reason))
}

// compileError returns the error of the compiler with its position, which is at the end of its
// message.
func compileError(err error) error {
	text := strings.TrimPrefix(err.Error(), "SyntaxError: ")
	match := regexp.MustCompile(`^(?s)(.*) at ` + sourceName + `:(\d+):(\d+)$`).FindStringSubmatch(text)
	if match == nil {
		return newError("", clipText(text))
	}
	return newError("", fmt.Sprintf("line %s, column %s: %s", match[2], match[3], clipText(match[1])))
}

// failure returns the error of a call: an exception, an interruption or too deep a recursion,
// with the position in the codec.
func (r *realm) failure(function string, err error) error {
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var exception *goja.Exception
	switch {
	case errors.As(err, &interrupted):
		return newError(function, positionPrefix(interrupted.Stack())+clipText(fmt.Sprint(interrupted.Value())))
	case errors.As(err, &overflow):
		return newError(function, positionPrefix(overflow.Stack())+"function calls are nested too deep")
	case errors.As(err, &exception):
		return newError(function, positionPrefix(exception.Stack())+clipText(r.message(exception.Value())))
	}
	return newError(function, clipText(err.Error()))
}

// positionPrefix returns the innermost position in the codec's source as a prefix of a reason,
// or "".
func positionPrefix(stack []goja.StackFrame) string {
	for _, f := range stack {
		if f.SrcName() == sourceName {
			p := f.Position()
			return fmt.Sprintf("line %d, column %d: ", p.Line, p.Column)
		}
	}
	return ""
}

// message returns the name and message of an exception, or its text. Reading these may run
// code of the codec, within the call's time limit.
func (r *realm) message(thrown goja.Value) (text string) {
	text = "an object without a message was thrown"
	_ = r.vm.Try(func() {
		obj, ok := thrown.(*goja.Object)
		if !ok {
			text = thrown.String()
			return
		}
		name, message := obj.Get("name"), obj.Get("message")
		switch {
		case message == nil || goja.IsUndefined(message):
			text = obj.String()
		case name == nil || goja.IsUndefined(name):
			text = message.String()
		default:
			text = name.String() + ": " + message.String()
		}
	})
	return text
}

func clipText(s string) string {
	return decoders.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxReason)
}
