package javascript

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
	"github.com/penstock/penstock/decoders"
)

const (
	format = "javascript"
	// origin is the codec's name in the interpreter's positions.
	origin = "codec"
	// grace is how long a call may take to notice that its time is up.
	grace = time.Second
	// queue is how long a call waits for those before it.
	queue = 2 * time.Second
)

// Options may all be left out.
type Options struct {
	// TimeLimit is how long a call may run; 0 stands for 100 ms.
	TimeLimit time.Duration
}

// Codec is a compiled source. It is safe for concurrent use; as many calls run
// at once as there are processors, so that the time limit is one of work.
type Codec struct {
	limit    time.Duration
	preludes []prelude
	code     *goja.Program
	uses     uses
	names    map[string]bool
	guarded  map[string]bool
	// all is set once a call computed the name of a guarded function.
	all atomic.Bool
	// aliases are the names that an ES module gives to its functions.
	aliases map[string]string
	slots   chan struct{}
}

// Compile checks and compiles a source and runs its top level once, to see
// that it defines a codec. The error is a *decoders.Error whose reason names
// line and column.
func Compile(source string, o Options) (*Codec, error) {
	if o.TimeLimit <= 0 {
		o.TimeLimit = 100 * time.Millisecond
	}
	limitPatterns()
	module, err := parse(source)
	if err != nil {
		return nil, err
	}
	code, err := goja.CompileAST(module.tree, false)
	if err != nil {
		return nil, compileError(err)
	}
	c := &Codec{
		limit: o.TimeLimit, code: code, names: reaching(module.names), guarded: guardedNames(), uses: usesOf(source), aliases: module.aliases,
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	if c.preludes, err = preludes(c.uses); err != nil {
		return nil, err
	}
	_, err = c.run(&decoders.Frame{}, func(r *realm) (decoders.Result, error) {
		_, err := r.entry(c.aliases)
		return decoders.Result{}, err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Decode runs the codec on a frame. The codec's own errors and warnings stand
// in the Result; an exception, a limit and a result without data are the error.
func (c *Codec) Decode(f *decoders.Frame) (decoders.Result, error) {
	switch {
	case f.Encrypted:
		return decoders.Result{}, refused("payload", "is encrypted")
	case len(f.Payload) > maxBytes:
		return decoders.Result{}, refused("payload", fmt.Sprintf("is longer than %d bytes", maxBytes))
	}
	return c.run(f, func(r *realm) (decoders.Result, error) { return r.decode(c.aliases) })
}

// reaching gives nil, for all names, when the source reads members by text.
func reaching(names map[string]bool) map[string]bool {
	for _, name := range []string{"getOwnPropertyDescriptor", "getOwnPropertyDescriptors", "__lookupGetter__", "__lookupSetter__"} {
		if names[name] {
			return nil
		}
	}
	return names
}

// outcome is the result of a call.
type outcome struct {
	res decoders.Result
	err error
}

// run gives work a fresh realm in which the codec's top level has run. A call
// that does not notice the end of its time is left behind and keeps its slot,
// so that a codec can hold up no more than itself.
func (c *Codec) run(f *decoders.Frame, work func(*realm) (decoders.Result, error)) (decoders.Result, error) {
	timer := time.NewTimer(queue)
	defer timer.Stop()
	select {
	case c.slots <- struct{}{}:
	case <-timer.C:
		return decoders.Result{OutOfTime: true}, refused("", "earlier calls of this codec have not ended")
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-c.slots }()
		done <- c.call(f, work)
	}()
	timer.Reset(c.limit + grace)
	select {
	case out := <-done:
		return out.res, out.err
	case <-timer.C:
		return decoders.Result{OutOfTime: true}, refused("", fmt.Sprintf("the codec did not end within %v", c.limit))
	}
}

// call runs one realm from beginning to end. A panic of the interpreter is an
// error of this codec only.
func (c *Codec) call(f *decoders.Frame, work func(*realm) (decoders.Result, error)) (out outcome) {
	r := newRealm(f, c.uses, need{all: c.all.Load() || c.names == nil, names: c.names, guarded: c.guarded})
	defer func() {
		if x := recover(); x != nil {
			out = outcome{err: r.broken(x)}
		}
		if r.again.Load() {
			c.all.Store(true)
			out = c.call(f, work)
			return
		}
		out.res.OutOfTime = r.expired.Load()
	}()
	timer := time.AfterFunc(c.limit, func() { r.expire(fmt.Sprintf("the codec did not end within %v", c.limit)) })
	defer timer.Stop()
	if err := r.prepare(c.preludes); err != nil {
		return outcome{err: err}
	}
	if _, err := r.vm.RunProgram(c.code); err != nil {
		return outcome{err: r.failure("", err)}
	}
	res, err := work(r)
	res.Warnings = append(res.Warnings, r.lines...)
	return outcome{res, err}
}
