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
	// origin is the codec's name in the interpreter's positions.
	origin = "codec"
)

// Codec is a compiled source. It is safe for concurrent use.
type Codec struct {
	code     *goja.Program
	preludes []*goja.Program
	uses     uses
	// aliases are the names that an ES module gives to its functions.
	aliases map[string]string
	// variables are the names that the source declares at its top level.
	variables []string
}

// Compile parses and compiles a source. It does not run any of it; Check does. The
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
	c := &Codec{code: code, uses: usesOf(source), aliases: module.aliases, variables: variablesOf(module.tree)}
	c.preludes, err = preludes(c.uses)
	return c, err
}

// Check runs the top level once and returns an error if that fails or defines no
// function that decodes.
func (c *Codec) Check(i *Interrupter) error {
	_, err := c.call(&decoders.Frame{}, i, func(r *realm) (decoders.Result, error) {
		_, err := r.entry(c.aliases)
		return decoders.Result{}, err
	})
	return err
}

// Decode runs the codec on a frame, without limits of time and memory: the caller either runs
// trusted sources, or bounds its own process and uses DecodeUntil.
func (c *Codec) Decode(f *decoders.Frame) (decoders.Result, error) {
	return c.DecodeUntil(f, &Interrupter{})
}

// DecodeUntil runs the codec on a frame until the interrupter ends the call. The codec's
// own errors and warnings are in the Result; the error is an exception, a limit, or
// the reason of the interrupter.
func (c *Codec) DecodeUntil(f *decoders.Frame, i *Interrupter) (decoders.Result, error) {
	switch {
	case f.Encrypted:
		return decoders.Result{}, refused("payload", "is encrypted")
	case len(f.Payload) > maxBytes:
		return decoders.Result{}, refused("payload", fmt.Sprintf("is longer than %d bytes", maxBytes))
	}
	return c.call(f, i, func(r *realm) (decoders.Result, error) { return r.decode(c.aliases) })
}

// Interrupter ends the call that it was passed to, from another goroutine. It serves
// one call at a time.
type Interrupter struct {
	vm    atomic.Pointer[goja.Runtime]
	fired atomic.Bool
}

// Interrupt ends the running call before its next instruction, and reports whether there
// is one. The codec cannot catch it. A function of the interpreter itself is one
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

// call runs the codec's top level in a new runtime, and then use. A panic of the
// interpreter is an error of this call only.
func (c *Codec) call(f *decoders.Frame, i *Interrupter, use func(*realm) (decoders.Result, error)) (res decoders.Result, err error) {
	r := newRealm(f, c.uses)
	r.variables = c.variables
	i.fired.Store(false)
	i.vm.Store(r.vm)
	defer func() {
		if x := recover(); x != nil {
			// Keep what the interpreter's own functions throw apart from what breaks the
			// interpreter.
			var own interface{ Stack() []goja.StackFrame }
			thrown, ok := x.(error)
			if ok && errors.As(thrown, &own) {
				err = r.failure("", thrown)
			} else {
				err = refused("", clipText(fmt.Sprintf("the interpreter broke: %v", x)))
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
	r.date, r.shim = r.vm.Get("Date").(*goja.Object), r.vm.Get("Buffer")
	if _, err := r.vm.RunProgram(c.code); err != nil {
		return res, r.failure("", err)
	}
	res, err = use(r)
	res.Warnings = append(res.Warnings, r.lines...)
	return res, err
}

// maxReason bounds what a codec's own messages add to an error, in bytes.
const maxReason = 500

func refused(field, reason string) error {
	return &decoders.Error{Format: format, Field: field, Offset: -1, Reason: reason}
}

// errorAt names a place in the source, line and column from 1.
func errorAt(line, column int, reason string) error {
	return refused("", fmt.Sprintf("line %d, column %d: %s", line, column, reason))
}

// compileError reads the place that the compiler puts behind its message.
func compileError(err error) error {
	text := strings.TrimPrefix(err.Error(), "SyntaxError: ")
	place := regexp.MustCompile(`^(?s)(.*) at ` + origin + `:(\d+):(\d+)$`).FindStringSubmatch(text)
	if place == nil {
		return refused("", clipText(text))
	}
	return refused("", fmt.Sprintf("line %s, column %s: %s", place[2], place[3], clipText(place[1])))
}

// failure is the reason that ended a call: an exception, the time limit, a limit of the
// guards or too deep a recursion, with the place in the codec where it was.
func (r *realm) failure(function string, err error) error {
	var stopped *goja.InterruptedError
	var deep *goja.StackOverflowError
	var thrown *goja.Exception
	switch {
	case errors.As(err, &stopped):
		return refused(function, place(stopped.Stack())+clipText(fmt.Sprint(stopped.Value())))
	case errors.As(err, &deep):
		return refused(function, place(deep.Stack())+"functions call one another too deep")
	case errors.As(err, &thrown):
		return refused(function, place(thrown.Stack())+clipText(r.message(thrown.Value())))
	}
	return refused(function, clipText(err.Error()))
}

// place is the innermost position within the codec's own source.
func place(stack []goja.StackFrame) string {
	for _, f := range stack {
		if f.SrcName() == origin {
			p := f.Position()
			return fmt.Sprintf("line %d, column %d: ", p.Line, p.Column)
		}
	}
	return ""
}

// message is the text of an exception: the name and message of an error, else its text.
// To read them may run the codec's own code, within the call's time.
func (r *realm) message(thrown goja.Value) (text string) {
	text = "an object was thrown that has no text"
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
