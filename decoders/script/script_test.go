package script

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
	"github.com/penstock/penstock/relay/relaytest"
)

func decode(t *testing.T, source string, f decoders.Frame) (map[string]any, decoders.Result, error) {
	t.Helper()
	s, err := Compile(source)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	res, err := s.Decode(&f)
	got := map[string]any{}
	for _, r := range res.Readings {
		got[r.Key] = r.Value
		if r.IsText {
			got[r.Key] = r.Text
		}
	}
	return got, res, err
}

func TestExpressions(t *testing.T) {
	payload := []byte{0x01, 0x10, 0xff, 0xfe, 0x80, 0x41, 0xc8, 0x00, 0x00, 0x20, 0x26, 'o', 'k', 0}
	for _, c := range []struct {
		name, source string
		want         map[string]any
	}{
		{"one key per line, with comments between", "# head\na = bytes[0]\n\n  # more\nb = bytes[1] * 2 // tail\r\n", map[string]any{"a": 1.0, "b": 32.0}},
		{"16-bit words", "a=uint16be(bytes,2)\nb=uint16le(bytes,2)\nc=int16be(bytes,2)\nd=int16le(bytes,2)", map[string]any{"a": 65534.0, "b": 65279.0, "c": -2.0, "d": -257.0}},
		{"24-bit words", "a=uint24be(bytes,1)\nb=int24le(bytes,2)\nc=uint24le(bytes,1)\nd=int24be(bytes,2)", map[string]any{"a": float64(0x10fffe), "b": float64(0x80feff - 1<<24), "c": float64(0xfeff10), "d": float64(0xfffe80 - 1<<24)}},
		{"32-bit words", "a=uint32be(bytes,2)\nb=int32be(bytes,2)\nc=uint32le(bytes,2)\nd=int32le(bytes,2)", map[string]any{"a": float64(0xfffe8041), "b": float64(0xfffe8041 - 1<<32), "c": float64(0x4180feff), "d": float64(0x4180feff)}},
		{"bytes", "a=uint8(bytes,2)\nb=int8(bytes,2)\nc=int8(bytes,4)", map[string]any{"a": 255.0, "b": -1.0, "c": -128.0}},
		{"floats", "a=float32be(bytes,5)\nb=float32le(bytes[5:],0)", map[string]any{"a": 25.0, "b": float64(math.Float32frombits(0x0000c841))}},
		{"bits are counted from the highest bit of the first byte", "a=bits(bytes,4,8)\nb=bits(bytes,0,32)\nc=bits(bytes,7,1)", map[string]any{"a": 0x11 * 1.0, "b": float64(0x0110fffe), "c": 1.0}},
		{"flags are 0 and 1", "a=bit(bytes,0,0)\nb=bit(bytes,0,1)\nc=bool(bytes,7)\nd=bytes[0]==1", map[string]any{"a": 1.0, "b": 0.0, "c": 0.0, "d": 1.0}},
		{"decimal digits", "a=bcd(bytes,9,2)", map[string]any{"a": 2026.0}},
		{"text", "a=hex(bytes,0,2)\nb=ascii(bytes,11,3)\nc='v'+hex(bytes,0,1)", map[string]any{"a": "0110", "b": "ok", "c": "v01"}},
		{"nil omits the key", "a=bytes[0]==1 ? nil : 5\nb=bytes[0]==2 ? nil : 5", map[string]any{"b": 5.0}},
		{"port, counter, object and parameters", "a=fPort\nb=fCnt\nc=object.t+1\nd=params.scale*2\ne=object?.none?.x\nf=object.name+'!'", map[string]any{"a": 2.0, "b": 7.0, "c": 21.5, "d": 1.0, "f": "n!"}},
		{"an expression may span lines", "a = bytes[0] == 1\n  ? 10\n  # why\n  : 20\nb = 2", map[string]any{"a": 10.0, "b": 2.0}},
		{"let names a value", "a = let raw = int16be(bytes, 2);\n  raw == 0x7fff ? nil : raw / 10", map[string]any{"a": -0.2}},
		{"keys may have dots and hyphens", "air.temp-1 = 5", map[string]any{"air.temp-1": 5.0}},
		{"lists and maps become nested keys", "a=[1,{'x':2}]", map[string]any{"a.0": 1.0, "a.1.x": 2.0}},
		{"predicates visit the bytes", "a=count(bytes, # > 200)\nb=sum(map(bytes[:2], # * 2))", map[string]any{"a": 2.0, "b": 34.0}},
		{"bit operations", "a=bitand(bytes[1],0x10)\nb=bitshr(bytes[1],4)", map[string]any{"a": 16.0, "b": 1.0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := decode(t, c.source, decoders.Frame{Payload: payload, FPort: 2, FCnt: 7,
				Object: map[string]any{"t": 20.5, "name": "n"}, Params: map[string]any{"scale": 0.5}})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the readings", got, c.want)
		})
	}
}

func TestSourcesThatDoNotCompile(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"an unknown name has its line and column", "a = 1\n b = bytes[0] + nosuch", "expr: b: line 2, column 17: unknown name nosuch"},
		{"an unknown name on a later line", "a = 1 +\n  nosuch", "expr: a: line 2, column 3: unknown name nosuch"},
		{"an incomplete expression", "a = bytes[1 +", "expr: a: line 1, column 13: unexpected end of the expression"},
		{"only a comment", " \n# only\n", "expr: line 1, column 1: the source has no expression"},
		{"an expression without a key", "bytes[0]", `expr: line 1, column 1: a line "key = expression" was expected`},
		{"a key without an expression", "a =", "expr: a: line 1, column 4: the expression is missing"},
		{"a repeated key", "a=1\na=2", "expr: a: line 2, column 1: the key is repeated"},
		{"a source that is too long", "a=1\n" + strings.Repeat("#", maxSource), "expr: line 1, column 1: the source is longer than 4096 bytes"},
		{"a predicate within a predicate", "a = count(bytes, count(bytes, # > 1) > 1)", "expr: a: line 1, column 4: a predicate within a predicate is not allowed"},
		{"let with a list", "a = let x = 1; [x, x]", "expr: a: line 1, column 4: let cannot be used with lists, maps, ranges or predicates"},
		{"a computed pattern", "a = 'x' matches object.p", "expr: a: line 1, column 4: the pattern of matches must be a literal string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Compile(c.source); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDisabledFunctions(t *testing.T) {
	for _, source := range []string{
		"repeat('x', 1000)", "now()", "date('2026-01-01')", "replace('a','a','b')", "join(['a'],'b')", "split('a','b')", "concat([1],[2])",
		"toJSON(object)", "fromJSON('1')", "reduce(bytes, #acc + #)", "flatten([[1]])", "sortBy(bytes, #)", "string(object)", "duration('1h')", "timezone('UTC')",
	} {
		if _, err := Compile("a = " + source); err == nil {
			t.Errorf("%s compiles", source)
		}
	}
}

func TestOtherKeysAreDecodedAfterAFailedKey(t *testing.T) {
	got, res, err := decode(t, "a = uint16be(bytes, 1)\nb = bytes[0]\nc = bytes[9]\nd = bcd(bytes,0,1)\ne = object.x.y", decoders.Frame{Payload: []byte{0xab, 1}})
	if want := "expr: a: offset 1: needs 2 bytes, there are 1"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	relaytest.Equal(t, "the readings", got, map[string]any{"b": 171.0})
	if len(res.Errors) != 3 {
		t.Fatalf("%d errors, want 3: %q", len(res.Errors), res.Errors)
	}
	if want := "expr: c: index out of range"; !strings.Contains(res.Errors[0], want) {
		t.Errorf("the first error is %q, want one with %q", res.Errors[0], want)
	}
	relaytest.Equal(t, "the second error", res.Errors[1], "expr: d: offset 0: 0xab is not two decimal digits")
}

func TestValuesThatAreNotFiniteAreRefused(t *testing.T) {
	got, res, err := decode(t, "a = 1/0\nb = 0/0.0", decoders.Frame{Payload: []byte{1}})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the readings", got, map[string]any{})
	if len(res.Warnings) != 2 {
		t.Errorf("%d warnings, want 2: %q", len(res.Warnings), res.Warnings)
	}
}

func TestCiphertextIsRefused(t *testing.T) {
	if _, _, err := decode(t, "a = 1", decoders.Frame{Payload: []byte{1}, Encrypted: true}); err == nil || err.Error() != "expr: payload: is encrypted" {
		t.Errorf("error %v", err)
	}
}

// An expression that compiles must end soon for any frame.
func TestNoExpressionRunsLong(t *testing.T) {
	list := make([]any, maxElements/2-40)
	for i := range list {
		list[i] = float64(i)
	}
	f := decoders.Frame{Payload: make([]byte, maxBytes), Object: map[string]any{"l": list, "s": strings.Repeat("a", 1<<16)}}
	for name, source := range map[string]string{
		"a long range":                 "a = sum(1..1000000000)",
		"a range within the limit":     "a = sum(1..4999)",
		"lists of all bytes":           "a = sum(map(map(bytes, bytes), # == bytes ? 1 : 0))",
		"a mean of lists of lists":     "a = mean(map(map(bytes, object.l), [#, #, #, #]))",
		"a string that doubles":        "a = let b = 'xxxxxxxxxxxxxxxx'; let c = b+b+b+b; let d = c+c+c+c; let e = d+d+d+d; let f = e+e+e+e; f+f",
		"a long string that doubles":   "a = let b = object.s; let c = b+b; let d = c+c; let e = d+d; len(e+e)",
		"a pattern over a long string": "a = object.s matches '(a*)*b'",
		"a large list for each byte":   "a = map(bytes, object.l)",
		"a power":                      "a = 10 ** 10 ** 10",
		"a shift":                      "a = bitshl(1, 1000000)",
		"equality of large lists":      "a = count(bytes, object.l == object.l)",
		"a list search for each byte":  "a = count(bytes, -1 in object.l)",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			res, err := s.Decode(&f)
			if err != nil && strings.Contains(err.Error(), "holds more") {
				t.Fatal("the frame is refused because it is too large")
			}
			if duration := time.Since(start); duration > 30*time.Second {
				t.Errorf("Decode took %v", duration)
			}
			if len(res.Readings) > values.MaxReadings {
				t.Errorf("%d readings, want at most %d", len(res.Readings), values.MaxReadings)
			}
		})
	}
}

func TestATooLargeObjectIsRefused(t *testing.T) {
	_, _, err := decode(t, "a = 1", decoders.Frame{Payload: []byte{1}, Object: map[string]any{"l": make([]any, maxElements)}})
	if err == nil || !strings.Contains(err.Error(), "object: has more values") {
		t.Errorf("error %v", err)
	}
}

// FuzzScript checks that any source is refused or returns limited, finite
// readings, without a panic.
func FuzzScript(f *testing.F) {
	for _, s := range []string{"a = uint16be(bytes, 0) / 10", "a = count(bytes, # > 3)\nb = object.x", "a=[1,2]\n#c\nb=let x=1;x+x", "a='x'+object", "a = 1..3", "a = bytes[1:2]", "= 1", "a == 1", "a=map(bytes,{'k':#})"} {
		f.Add(s, []byte{1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, source string, payload []byte) {
		s, err := Compile(source)
		if err != nil {
			return
		}
		res, _ := s.Decode(&decoders.Frame{Payload: payload[:min(len(payload), 64)], Object: map[string]any{"x": 1.0}})
		if len(res.Readings) > 1000 {
			t.Fatalf("%d readings, want at most 1000", len(res.Readings))
		}
		for _, r := range res.Readings {
			if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
				t.Fatalf("the reading %q is not finite: %v", r.Key, r.Value)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	s, err := Compile("temperature = int16be(bytes, 0) / 10\nhumidity = bytes[2] / 2\nbattery = uint16be(bytes, 3) / 1000")
	if err != nil {
		b.Fatal(err)
	}
	f := &decoders.Frame{Payload: []byte{1, 0x10, 0x61, 0x0e, 0x10}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decode(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile("temperature = int16be(bytes, 0) / 10"); err != nil {
			b.Fatal(err)
		}
	}
}
