package javascript

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
)

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
