package javascript

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestSourcesThatDoNotCompile(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a syntax error has its line and column", "function decodeUplink(input) {\n  return { data: };\n}", "javascript: line 2, column 18: Unexpected token }"},
		{"a name declared twice", "let a;\nlet a;\nfunction Decode() {}", "javascript: line 2, column 5: Identifier 'a' has already been declared"},
		{"an invalid regular expression", "\nvar r = /(/;", "javascript: line 2, column 9: Unterminated group"},
		{"top-level code that throws", "var a = {};\na.b.c = 1;\nfunction Decode() {}", "javascript: line 2, column 5: TypeError: Cannot convert undefined or null to object"},
		{"no function", "var a = 1;", "javascript: none of the functions decodeUplink, Decode and Decoder is defined"},
		{"an empty source", "", "javascript: none of the functions decodeUplink, Decode and Decoder is defined"},
		{"a source that is too long", strings.Repeat(" ", maxSource+1), "javascript: line 1, column 1: the source is longer than 1048576 bytes"},
		{"a Unicode property escape", "function decodeUplink(i) {\n  return {data: {a: /\\p{L}/u.test(\"x\")}};\n}", "javascript: line 2, column 21: Unicode property escapes (\\p{…}) are not supported in regular expressions"},
		{"a Unicode property escape in a list of arguments", "function Decode(p, b) { return b.map(x => [1, /[^\\P{Lu}]/u]) }", "javascript: line 1, column 47: Unicode property escapes (\\p{…}) are not supported in regular expressions"},
		{"an import", "import fs from 'fs';\nexport function decodeUplink() {}", "javascript: line 1, column 1: only buffer can be imported"},
		{"export within a function", "function decodeUplink() {\n  export default\n}", "javascript: line 3, column 1: Unexpected token }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec, err := Compile(c.source)
			if err == nil {
				err = codec.Check(&Interrupter{})
			}
			var decoderErr *decoders.Error
			if err == nil || err.Error() != c.want || !errors.As(err, &decoderErr) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLongSourcesRun(t *testing.T) {
	var b strings.Builder
	b.WriteString("function decodeUplink(input) {\n  var d = {};\n  for (var i = 0; i < input.bytes.length; i++) switch (input.bytes[i]) {\n")
	for i := 0; b.Len() < 1000<<10; i++ {
		fmt.Fprintf(&b, "    case %d: d['field_' + %d] = (input.bytes[i] << 8 | %d) / 10; break; // field %d\n", i, i, i&0xff, i)
	}
	b.WriteString("  }\n  if (d.a) { d.b = 1 }\n")
	for i := range 150 {
		fmt.Fprintf(&b, "  else if (d.x === %d) { d.y = %d }\n", i, i)
	}
	b.WriteString("  return { data: d };\n}\n")
	res, err := decode(t, b.String())
	relaytest.NoError(t, err)
	if len(res.Readings) != 3 {
		t.Fatalf("%d readings, want 3: %v", len(res.Readings), res.Readings)
	}
	relaytest.Equal(t, "the third reading", res.Readings[2], decoders.Reading{Key: "field_3", Value: 77.1})
}

func TestFramesThatAreRefused(t *testing.T) {
	c, err := Compile(uplinkSource("return {data: {n: input.bytes.length}}"))
	relaytest.NoError(t, err)
	for want, f := range map[string]decoders.Frame{
		"javascript: payload: is encrypted":              {Payload: []byte{1}, Encrypted: true},
		"javascript: payload: is longer than 4096 bytes": {Payload: make([]byte, maxBytes+1)},
	} {
		if _, err := c.Decode(&f); err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
	if res, err := c.Decode(&decoders.Frame{}); err != nil || res.Readings[0].Value != 0 {
		t.Errorf("an empty frame: got %v, %v, want n = 0", res, err)
	}
}

func TestCodecsAreSafeForConcurrentUse(t *testing.T) {
	c, err := Compile(`var seen = 0; function decodeUplink(input) { seen += input.bytes[0]; return { data: { seen: seen, s: String(seen) } }; }`)
	relaytest.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			res, err := c.Decode(&decoders.Frame{Payload: []byte{byte(i)}})
			if want := fmt.Sprintf("s = \"%d\"\nseen = %d\n", i, i); formatResult(res, err) != want {
				t.Errorf("got %s want %s", formatResult(res, err), want)
			}
		})
	}
	wg.Wait()
}

// FuzzCodec checks that any source is refused or returns limited, finite readings, without a
// panic. The interrupter ends endless codecs. Memory is not limited.
func FuzzCodec(f *testing.F) {
	for _, c := range fixtures(f) {
		f.Add(c.source, c.frame.Payload)
	}
	for _, s := range []string{"export default {decodeUplink(i){return{data:[...i.bytes]}}}", "function Decode(p,b){return b.map(x=>x/0)}", "export{a as Decode};import'buffer';let a=()=>({[`${1}`]:[{time:1e12}]})", "function Decoder(b){for(;;)b+=b}"} {
		f.Add(s, []byte{1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, source string, payload []byte) {
		c, err := Compile(source)
		var res decoders.Result
		if err == nil {
			i := &Interrupter{}
			timer := time.AfterFunc(50*time.Millisecond, func() { i.Interrupt("out of time") })
			res, _ = c.DecodeUntil(&decoders.Frame{Payload: payload[:min(len(payload), 64)]}, i)
			timer.Stop()
		}
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
