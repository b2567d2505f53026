package javascript

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// body makes a codec of what stands within decodeUplink.
func body(code string) string { return "function decodeUplink(input) {\n" + code + "\n}" }

func decode(t testing.TB, source string) (decoders.Result, error) {
	t.Helper()
	return decodeWithin(t, source, 0)
}

// unhurried is for codecs that meet another limit than that of time, however
// busy the machine is.
const unhurried = 10 * time.Second

func decodeWithin(t testing.TB, source string, limit time.Duration) (decoders.Result, error) {
	t.Helper()
	c, err := Compile(source, Options{TimeLimit: limit})
	for n := 0; n < 50 && err != nil && strings.Contains(err.Error(), "did not end"); n++ { // the machine is busy
		c, err = Compile(source, Options{TimeLimit: limit})
	}
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return c.Decode(&decoders.Frame{Payload: []byte{1, 2, 3}, HasFPort: true, FPort: 1})
}

func TestHostileCodecsEndAlone(t *testing.T) {
	const late, long, listed, deep = "did not end", "a string would be longer", "a list is longer", "too deep"
	for _, c := range []struct{ name, code, want string }{
		{"an endless loop", "for (;;);", late},
		{"an endless loop that catches everything", "for (;;) try { for (;;); } catch (e) {} finally { for (;;); }", late},
		{"endless recursion", "return decodeUplink(input)", deep},
		{"endless recursion that catches everything", "try { return decodeUplink(input) } catch (e) { return decodeUplink(input) }", deep},
		{"a string that doubles", "let s = 'xy'; for (;;) s += s", long},
		{"a string that doubles and is not to be stopped", "let s = 'xy'; for (;;) try { s += s } catch (e) {}", long},
		{"a string that doubles in a template", "let s = 'xy'; for (;;) s = `${s}${s}`", long},
		{"a string that doubles in a sum", "let s = 'xy'; for (;;) s = (s + s)", long},
		{"a string that doubles in an error", "let e = new Error('x'); for (;;) e.name = e.message = String(e)", long},
		{"a string that doubles by concat", "let s = 'xy'; for (;;) s = s.concat(s)", long},
		{"a string that doubles by join", "let s = 'xy'; for (;;) s = [s, s].join(s)", long},
		{"a string that doubles by replace", "let s = 'xy'; for (;;) s = s.replace(/x/g, s)", "too long"},
		{"a replacement that is made long", "return 'a'.repeat(2e5).replace(/a/g, () => 'b'.repeat(2e5))", ""},
		{"a string repeated 2 to the 40 times", "return {data: 'x'.repeat(2 ** 40)}", long},
		{"a string padded to a million millions", "return {data: 'x'.padEnd(1e12)}", long},
		{"a list that doubles", "let a = [1]; for (;;) a = [...a, ...a]", ""},
		{"a list that doubles by concat", "let a = [1]; for (;;) a = a.concat(a)", listed},
		{"a list that grows", "let a = []; for (;;) a.push({a: {b: [1, 2, 3]}})", ""},
		{"a list said to be of four billions, filled", "let a = []; a.length = 4e9; a.fill(1)", listed},
		{"a list said to be of four billions, spread", "let a = []; a.length = 4e9; return [...a]", late},
		{"a list said to be of four billions, joined", "return new Array(4e9).join('x')", listed},
		{"a list that lengthens while it is spread", "let a = [1]; Object.defineProperty(a, 0, {get() { a.length = 4e9 }}); return [...a]", late},
		{"a list that lengthens while a set is made of it", "let a = [1]; Object.defineProperty(a, 0, {get() { a.length = 4e9 }}); return new Set(a)", late},
		{"what is like a list of 2 to the 53", "return [].indexOf.call({length: 2 ** 53 - 1}, 1)", listed},
		{"what is like a list, as arguments", "return Math.max.apply(null, {length: 4e9})", listed},
		{"what is like a list, copied", "return Array.from({length: 1e15})", listed},
		{"a length that changes", "let n = 0; return [].map.call({get length() { return n++ ? 2 ** 53 - 1 : 1 }}, x => x) && ''", ""},
		{"a generator without an end, spread", "return [...(function* () { for (;;) yield 1 })()]", late},
		{"a buffer of a terabyte", "return new Uint8Array(1e12)", "buffers hold more"},
		{"buffers without end", "let a = []; for (;;) a.push(new ArrayBuffer(1e5))", "buffers hold more"},
		{"a buffer of a Buffer", "let a = []; for (;;) a.push(Buffer.alloc(1e5))", "buffers hold more"},
		{"JSON of what doubles at each level", "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a)", deep},
		{"text of what doubles at each level", "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return String(a)", ""},
		{"text of a million levels", "let a = []; for (let i = 0; i < 5e4; i++) a = [a]; return String(a)", ""},
		{"flat of what doubles at each level", "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return a.flat(Infinity)", deep},
		{"JSON that is nested deep", "return JSON.parse('['.repeat(2e5))", "too deep"},
		{"toJSON that never ends", "let d = () => ({toJSON() { return {a: d()} }}); JSON.stringify(d())", late},
		{"a regular expression that backtracks", "return /^(?=(a+)+b)/.test('a'.repeat(60))", late},
		{"a regular expression made of text", "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", "regular expression is longer"},
		{"a promise that never ends", "Promise.resolve().then(() => { for (;;); }); return {data: {}}", ""},
		{"the same long strings sorted", "let a = Array(6e4).fill('a'.repeat(2e5)); a.sort(); return a", ""},
		{"code made of text", "return this.constructor.constructor('return this')()", "code made of text is not supported"},
		{"code made of text by eval", "return eval('1')", "code made of text is not supported"},
		{"code made of text by a generator", "return (function* () {}).constructor('yield 1')", "code made of text is not supported"},
		{"Proxy", "return new Proxy({}, {})", "Proxy is not defined"},
		{"a result within itself", "let a = {}; a.a = a; return {data: a}", "nested deeper than 32"},
		{"a result of many values", "return {data: Array(3e4).fill(1)}", "more than 20000 values"},
		{"a result of many characters", "return {data: Array(60).fill('x'.repeat(1e4))}", "more than 262144 characters"},
		{"a result that loops when it is read", "return {data: {get a() { for (;;); }}}", late},
		{"a result that grows when it is read", "let g = () => ({get a() { return g() }}); return {data: g()}", "nested deeper than 32"},
		{"a result that throws when it is read", "return {data: {get a() { throw new Error('read') }}}", "line 2, column 32: Error: read"},
		{"a result that says it is a huge list", "let a = []; a.length = 4e9; return {data: a}", "more than 20000 values"},
		{"an error that cannot be shown", "throw {toString() { throw 1 }}", "an object was thrown that has no text"},
		{"an error that loops when it is shown", "throw {get message() { for (;;); }}", late},
		{"a text", "return 'text'", "gave no object"},
		{"a function", "return () => 1", "gave no object"},
		{"nothing", "", "gave no object"},
		{"data that is a text", "return {data: 'text'}", "gave data that is no object"},
		{"require of what there is not", "return require('fs')", "require: there is no module fs; only buffer can be required"},
		{"an exception", "null.x", "line 2, column 6: TypeError: Cannot read property 'x' of undefined"},
		{"an exception that is a text", "throw 'bad frame'", "decodeUplink: line 2, column 1: bad frame"},
	} {
		t.Run(c.name, func(t *testing.T) {
			peak := watch(t)
			start := time.Now()
			limit := time.Duration(0)
			if c.want != "" && c.want != late {
				limit = unhurried
			}
			res, err := decodeWithin(t, body(c.code), limit)
			if took := time.Since(start); took > 3*unhurried {
				t.Errorf("took %v", took)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if len(res.Readings) > 1000 {
				t.Errorf("%d readings", len(res.Readings))
			}
			mb := peak()
			t.Logf("heap at most %d MB", mb)
			if mb > 1000 {
				t.Error("too much memory")
			}
		})
	}
	res, err := decode(t, body("return {data: {t: 1}}"))
	if err != nil || len(res.Readings) != 1 {
		t.Errorf("after them a good codec gives %v, %v", res, err)
	}
}

// watch follows the memory that the heap holds, in MB, until its result is
// called.
func watch(t *testing.T) func() uint64 {
	t.Helper()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		high := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- high
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				high = max(high, m.HeapInuse>>20)
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

func TestCallsShareNothing(t *testing.T) {
	c, err := Compile(`
		var count = 0; let lexical = 0; const held = { n: 0 };
		function decodeUplink(input) {
			var before = [count, lexical, held.n, typeof leaked, [].extra, {}.extra, 'x'.extra, (5).toFixed(1), Object.isFrozen(Array.prototype), input.variables.list.length, input.bytes.length].join();
			count++; lexical++; held.n++;
			leaked = 1; globalThis.decodeUplink = null; this.other = 1;
			Array.prototype.extra = 1; Object.prototype.extra = 1; String.prototype.extra = 1;
			Number.prototype.toFixed = function () { return 'changed'; };
			Array.prototype.join = function () { return 'changed'; };
			Object.freeze(Array.prototype); Math.random = null; JSON.parse = null; Date = null;
			input.variables.list.push(9); input.bytes.push(9);
			return { data: { before: before } };
		}`, Options{})
	relaytest.NoError(t, err)
	params := map[string]any{"list": []any{1.0}}
	for range 5 {
		res, err := c.Decode(&decoders.Frame{Payload: []byte{1, 2}, Params: params})
		if want := "before = \"0,0,0,undefined,,,,5.0,false,1,2\"\n"; show(res, err) != want {
			t.Fatalf("got %s want %s", show(res, err), want)
		}
	}
	if len(params["list"].([]any)) != 1 {
		t.Errorf("the parameters were changed: %v", params)
	}
}

func TestGuardsCannotBeTakenOut(t *testing.T) {
	for name, code := range map[string]string{
		"by overwriting":        `globalThis['bound string'] = x => x; let s = 'xy'; for (;;) s += s`,
		"by defining":           `try { Object.defineProperty(globalThis, 'bound string', {value: x => x}) } catch (e) {} let s = 'xy'; for (;;) s += s`,
		"by deleting":           `delete globalThis['bound string']; let s = 'xy'; for (;;) s += s`,
		"by deleting a method":  `delete String.prototype.repeat; return {data: 'x'.padEnd(1e12)}`,
		"by tampering with it":  `Function.prototype.call = Function.prototype.apply = Array.isArray = null; return {data: 'x'.repeat(1e12)}`,
		"by a computed name":    `return {data: 'x'['re' + 'peat'](1e12)}`,
		"by a name of a name":   `let n = {toString() { return 're' + 'peat' }}; return {data: 'x'[n](1e12)}`,
		"by a template":         "return {data: 'x'[`repeat`](1e12)}",
		"by a pattern":          `const {['re' + 'peat']: f} = 'x'; return {data: f.call('x', 1e12)}`,
		"by a written pattern":  `const {repeat: f} = 'x'; return {data: f.call('x', 1e12)}`,
		"by an escaped name":    `return {data: 'x'.rep\u0065at(1e12)}`,
		"by an optional chain":  `return {data: 'x'?.['re' + 'peat']?.(1e12)}`,
		"by a computed global":  `return {data: new globalThis['Uint8' + 'Array'](1e12)}`,
		"by a list of names":    `for (const n of Object.getOwnPropertyNames(String.prototype)) if (n[0] === 'r' && n.length === 6) return {data: 'x'[n](1e12)}`,
		"by a descriptor":       `return {data: Object.getOwnPropertyDescriptor(String.prototype, 're' + 'peat').value.call('x', 1e12)}`,
		"by all descriptors":    `let d = Object['getOwn' + 'PropertyDescriptors'](String.prototype); return {data: d['re' + 'peat'].value.call('x', 1e12)}`,
		"by a constructor":      `return this['construct' + 'or']['construct' + 'or']('return {data: {}}')()`,
		"by super":              `let o = {__proto__: String.prototype, f() { return super['re' + 'peat'].call('x', 1e12) }}; return {data: o.f()}`,
		"by a subclass":         `class A extends Uint8Array {} return {data: new A(1e12)}`,
		"by its constructor":    `return {data: new (Uint8Array.prototype.constructor)(1e12)}`,
		"by an inherited from":  `return {data: Uint8Array.from({length: 1e12})}`,
		"by the list's species": `let a = [1, 2]; a.constructor = {[Symbol.species]: function () { return new Uint8Array(1e12) }}; return {data: a.map(x => x)}`,
	} {
		t.Run(name, func(t *testing.T) {
			res, err := decodeWithin(t, body(code), unhurried)
			if err == nil || !strings.Contains(err.Error(), "longer than") && !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "made of text") {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
}

func TestSameFrameSameValues(t *testing.T) {
	source := body("return {data: {r: Math.random(), now: Date.now(), text: new Date().toString()}}")
	first, err := decode(t, source)
	relaytest.NoError(t, err)
	again, _ := decode(t, source)
	if show(first, nil) != show(again, nil) {
		t.Errorf("got %s and %s", show(first, nil), show(again, nil))
	}
}

func TestConsoleIsBounded(t *testing.T) {
	res, err := decodeWithin(t, body("for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000), i); return {data: {}}"), unhurried)
	if err != nil || len(res.Warnings) != maxLines || len(res.Warnings[0]) > maxLine+len("…") {
		t.Errorf("%d warnings, error %v", len(res.Warnings), err)
	}
}
