package javascript

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// uplinkSource returns a source with a function decodeUplink whose body is code.
func uplinkSource(code string) string { return "function decodeUplink(input) {\n" + code + "\n}" }

func decode(t testing.TB, source string) (decoders.Result, error) {
	t.Helper()
	c, err := Compile(source)
	relaytest.NoError(t, err)
	return c.Decode(&decoders.Frame{Payload: []byte{1, 2, 3}, HasFPort: true, FPort: 1})
}

func TestFailingCallsAndInvalidResults(t *testing.T) {
	const deep = "too deep"
	for _, tt := range []struct{ name, code, want string }{
		{"endless recursion", "return decodeUplink(input)", deep},
		{"endless recursion that catches everything", "try { return decodeUplink(input) } catch (e) { return decodeUplink(input) }", deep},
		{"a result that contains itself", "let a = {}; a.a = a; return {data: a}", "nested deeper than 32"},
		{"a result with too many values", "return {data: Array(3e4).fill(1)}", "more than 20000 values"},
		{"a result with too many characters", "return {data: Array(60).fill('x'.repeat(1e4))}", "more than 262144 characters"},
		{"a result that grows when it is read", "let g = () => ({get a() { return g() }}); return {data: g()}", "nested deeper than 32"},
		{"a result that throws when it is read", "return {data: {get a() { throw new Error('read') }}}", "line 2, column 32: Error: read"},
		{"a list with a huge length", "let a = []; a.length = 4e9; return {data: a}", "more than 20000 values"},
		{"a thrown object without a message", "throw {toString() { throw 1 }}", "an object without a message was thrown"},
		{"a string instead of an object", "return 'text'", "did not return an object"},
		{"a function instead of an object", "return () => 1", "did not return an object"},
		{"no result", "", "did not return an object"},
		{"data that is a string", "return {data: 'text'}", "returned data that is not an object"},
		{"require of an unknown module", "return require('fs')", "require: there is no module fs; only buffer can be required"},
		{"an exception", "null.x", "line 2, column 6: TypeError: Cannot read property 'x' of undefined"},
		{"an exception that is a string", "throw 'bad frame'", "decodeUplink: line 2, column 1: bad frame"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decode(t, uplinkSource(tt.code))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestLanguageFeatures(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"a BigInt literal in a branch that never runs", uplinkSource("if (false) { return {data: {a: 10n}} } return {data: {a: 1}}"), "a = 1\n"},
		{"eval", uplinkSource("return {data: {a: eval('1+1')}}"), "a = 2\n"},
		{"the Function constructor", uplinkSource("return {data: {a: new Function('return 3')()}}"), "a = 3\n"},
		{"Proxy and Reflect", uplinkSource("return {data: {a: Reflect.ownKeys(new Proxy({x: 1}, {})).length}}"), "a = 1\n"},
		{"the with statement", uplinkSource("with (input) { return {data: {a: bytes.length}} }"), "a = 3\n"},
		{"new Buffer with hexadecimal digits", uplinkSource("var b = new Buffer('0102', 'hex'); return {data: {n: b.length, a: b.readUInt16BE(0)}}"), "a = 258\nn = 2\n"},
		{"Buffer without new", uplinkSource("var b = Buffer([1, 2]); return {data: {n: b.length, is: Buffer.isBuffer(b) && b instanceof Buffer}}"), "is = 1\nn = 2\n"},
		{"new Buffer with a size", uplinkSource("return {data: {n: new Buffer(4).length, last: new Buffer(4)[3]}}"), "last = 0\nn = 4\n"},
		{"a slice of a Buffer is a Buffer", uplinkSource("return {data: {s: new Buffer('abc').slice(1).toString('hex')}}"), "s = \"6263\"\n"},
		{"JSON with 101 brackets within a string", uplinkSource("return {data: {n: JSON.parse('\"' + '['.repeat(101) + '\"').length}}"), "n = 101\n"},
		{"JSON of 5,000 nested lists", uplinkSource("return {data: {n: JSON.parse('['.repeat(5000) + ']'.repeat(5000)).length}}"), "n = 1\n"},
		{"an escaped backslash before p{", uplinkSource(`return {data: {a: /\\p{2}/u.test("\\pp")}}`), "a = 1\n"},
		{"p{ without the flag u", uplinkSource(`return {data: {a: /\p{2}/.test("pp")}}`), "a = 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := decode(t, tt.source)
			if got := formatResult(res, err); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestCallsShareNothing(t *testing.T) {
	c, err := Compile(`
		var count = 0; let lexical = 0; const constant = { n: 0 };
		function decodeUplink(input) {
			var before = [count, lexical, constant.n, typeof leaked, [].extra, {}.extra, 'x'.extra, (5).toFixed(1), Object.isFrozen(Array.prototype), input.variables.list.length, input.bytes.length].join();
			count++; lexical++; constant.n++;
			leaked = 1; globalThis.decodeUplink = null; this.other = 1;
			Array.prototype.extra = 1; Object.prototype.extra = 1; String.prototype.extra = 1;
			Number.prototype.toFixed = function () { return 'changed'; };
			Array.prototype.join = function () { return 'changed'; };
			Object.freeze(Array.prototype); Math.random = null; JSON.parse = null; Date = null;
			input.variables.list.push(9); input.bytes.push(9);
			return { data: { before: before } };
		}`)
	relaytest.NoError(t, err)
	params := map[string]any{"list": []any{1.0}}
	for range 5 {
		res, err := c.Decode(&decoders.Frame{Payload: []byte{1, 2}, Params: params})
		if want := "before = \"0,0,0,undefined,,,,5.0,false,1,2\"\n"; formatResult(res, err) != want {
			t.Fatalf("got %s want %s", formatResult(res, err), want)
		}
	}
	relaytest.Equal(t, "the parameters", params, map[string]any{"list": []any{1.0}})
}

func TestAFrameIsAlwaysDecodedToTheSameValues(t *testing.T) {
	source := uplinkSource("return {data: {r: Math.random(), now: Date.now(), text: new Date().toString()}}")
	firstResult, err := decode(t, source)
	relaytest.NoError(t, err)
	secondResult, err := decode(t, source)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the second result", formatResult(secondResult, nil), formatResult(firstResult, nil))
}

func TestConsoleIsBounded(t *testing.T) {
	res, err := decode(t, uplinkSource("for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000), i); return {data: {}}"))
	if err != nil || len(res.Warnings) != maxLines || len(res.Warnings[0]) > maxLineBytes+len("…") {
		t.Errorf("%d warnings, error %v, want %d warnings of at most %d bytes", len(res.Warnings), err, maxLines, maxLineBytes)
	}
}

// LimitExceeded is set if a call is interrupted, and not if the codec fails.
func TestInterruptedCallsExceedTheLimit(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		interrupted  bool
	}{
		{"a codec that returns", uplinkSource("return {data: {a: 1}}"), false},
		{"a codec that throws the message of the interruption", uplinkSource("throw new Error('out of time')"), false},
		{"a loop", uplinkSource("for (;;);"), true},
		{"a loop that catches everything", uplinkSource("for (;;) try { for (;;); } catch (e) {} finally { for (;;); }"), true},
		{"a result that loops when it is read", uplinkSource("return {data: {get a() { for (;;); }}}"), true},
		{"an error whose message loops", uplinkSource("throw {get message() { for (;;); }}"), true},
		{"a loop at the top level, for some frames", "if (new Date().getTime() > 0) for (;;);\n" + uplinkSource("return {data: {a: 1}}"), true},
		{"a loop in normalizeUplink", uplinkSource("return {data: {a: 1}}") + "\nfunction normalizeUplink(i) { for (;;); }", true},
		{"an endless generator in a spread", uplinkSource("return [...(function* () { for (;;) yield 1 })()]"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Compile(tt.source)
			relaytest.NoError(t, err)
			i := &Interrupter{}
			ended := make(chan struct{})
			if tt.interrupted {
				go func() { // repeat until the call ends: Interrupt has no effect before the call starts
					tick := time.NewTicker(time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-ended:
							return
						case <-tick.C:
							i.Interrupt("out of time")
						}
					}
				}()
			}
			res, err := c.DecodeUntil(&decoders.Frame{Payload: []byte{1}, NetworkTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, i)
			close(ended)
			relaytest.Equal(t, "limit exceeded", res.LimitExceeded, tt.interrupted)
			if tt.interrupted && err == nil && len(res.Errors) == 0 {
				t.Error("error = nil, want an error of the interrupted call")
			}
		})
	}
}
