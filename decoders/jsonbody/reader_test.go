package jsonbody

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/relay/relaytest"
)

// check returns the syntax error of a body.
func check(body []byte) error {
	r := New(body)
	r.Skip()
	return r.Close()
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, body string
		offset     int // of the error, or -1 for valid JSON
	}{
		{"an object with values of every kind is valid", `{"a":[1,-2.5e3,"x",true,false,null,{}],"b":{"c":[]}}`, -1},
		{"white space around every token is valid", " {\t\"a\" :\r\n 1 , \"b\" : [ ] } \n", -1},
		{"a bare scalar is valid", `-0.5`, -1},
		{"a byte order mark is skipped", "\xef\xbb\xbf{}", -1},
		{"a long string with escapes is valid", `"` + strings.Repeat("plain text ", 9) + `\u00e9\n\"end"`, -1},
		{"an empty string is refused", "", 0},
		{"an unclosed object is refused at its end", `{"a":1`, 6},
		{"a trailing comma in an object is refused", `{"a":1,}`, 7},
		{"a trailing comma in an array is refused", `[1,]`, 3},
		{"a missing comma is refused", `[1 2]`, 3},
		{"a missing colon is refused", `{"a" 1}`, 5},
		{"a key without quotes is refused", `{a:1}`, 1},
		{"NaN is refused", `[NaN]`, 1},
		{"Infinity is refused", `{"a":Infinity}`, 5},
		{"a leading zero is refused", `[01]`, 2},
		{"a bare dot is refused", `[1.]`, 3},
		{"a plus sign is refused", `[+1]`, 1},
		{"a raw newline in a string is refused", "[\"a\nb\"]", 3},
		{"a raw newline past the eighth byte is refused", "[\"abcdefghij\nb\"]", 12},
		{"an unknown escape is refused", `["\x41"]`, 2},
		{"a short unicode escape is refused", `["\u00e"]`, 2},
		{"text after the value is refused", `{} {}`, 3},
		{"a zero byte after the value is refused", "{}\x00", 2},
		{"a misspelt literal is refused", `[nul]`, 1},
		{"an unclosed array is refused", `[[1],[2]`, 8},
		{"nesting to the limit is valid", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), -1},
		{"nesting past the limit is refused", strings.Repeat("[", 1e6), MaxDepth + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := check([]byte(c.body))
			if c.offset < 0 {
				if err != nil {
					t.Fatalf("check: %v", err)
				}
				return
			}
			e, ok := errors.AsType[*SyntaxError](err)
			if !ok {
				t.Fatalf("check: got %v, want a syntax error", err)
			}
			relaytest.Equal(t, "the offset of "+e.Reason, e.Offset, c.offset)
		})
	}
}

func TestValueConversions(t *testing.T) {
	for _, c := range []struct {
		name, body string
		convert    func(Value) (any, bool)
		want       any
		ok         bool
	}{
		{"a number is a float", `1.5`, float, 1.5, true},
		{"a number in a string is a float", `"-7.25"`, float, -7.25, true},
		{"a word is not a float", `"warm"`, float, 0.0, false},
		{"a number beyond float64 is not a float", `1e400`, float, 0.0, false},
		{"NaN in a string is not a float", `"NaN"`, float, 0.0, false},
		{"true is not a float", `true`, float, 0.0, false},
		{"a whole number is an int", `42`, integer, int64(42), true},
		{"a negative number is an int", `-3`, integer, int64(-3), true},
		{"a whole number with an exponent is an int", `1e3`, integer, int64(1000), true},
		{"a fraction is not an int", `1.5`, integer, int64(0), false},
		{"a number beyond 2^53 is not an int", `99999999999999999999`, integer, int64(0), false},
		{"a string of digits is an int", `"868100000"`, integer, int64(868100000), true},
		{"an object is not an int", `{"a":1}`, integer, int64(0), false},
		{"a string is text", `"a\u00e9\ud83d\ude00\/"`, text, "aé😀/", true},
		{"half a surrogate pair is replaced", `"\ud83dx"`, text, "\uFFFDx", true},
		{"invalid UTF-8 is replaced", "\"a\xffb\"", text, "a\uFFFDb", true},
		{"a number is text", `17`, text, "17", true},
		{"null is not text", `null`, text, "", false},
		{"padded base64 is bytes", `"ARI="`, b64, []byte{1, 0x12}, true},
		{"base64 without padding is bytes", `"ARI"`, b64, []byte{1, 0x12}, true},
		{"base64 in the URL alphabet is bytes", `"-_8="`, b64, []byte{0xfb, 0xff}, true},
		{"base64 with an escaped slash is bytes", `"\/\/8="`, b64, []byte{0xff, 0xff}, true},
		{"a string with an invalid character is not base64", `"a!b"`, b64, []byte{}, false},
		{"a hexadecimal number in a string is not a float", `"0x1p4"`, float, 0.0, false},
		{"digits with underscores are not an int", `"1_0"`, integer, int64(0), false},
		{"a number is not base64", `12`, b64, []byte(nil), false},
		{"null is empty base64", `null`, b64, []byte(nil), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New([]byte(c.body))
			got, ok := c.convert(r.Value())
			relaytest.NoError(t, r.Close())
			relaytest.Equal(t, "whether the value converts", ok, c.ok)
			if ok {
				relaytest.Equal(t, "the value", got, c.want)
			}
		})
	}
}

func float(v Value) (any, bool)   { f, ok := v.Float(); return f, ok }
func integer(v Value) (any, bool) { n, ok := v.Int(); return n, ok }
func text(v Value) (any, bool)    { s, ok := v.Text(); return s, ok }
func b64(v Value) (any, bool)     { b, ok := v.Base64(); return b, ok }

func TestAnyWithDuplicateKeysAndHugeNumbers(t *testing.T) {
	r := New([]byte(`{"a":1,"a":2,"A":3,"big":1e400,"small":-1e400}`))
	want := map[string]any{"a": 2.0, "A": 3.0, "big": math.Inf(1), "small": math.Inf(-1)}
	relaytest.Equal(t, "the object", r.Any(), any(want))
}

func TestAValueOfAWrongKindIsSkipped(t *testing.T) {
	r := New([]byte(`{"list":"not a list","object":[1,2],"name":"kept"}`))
	name := ""
	for key := range r.Fields() {
		switch string(key) {
		case "list":
			if r.Array() {
				t.Error("Array returns true for a string")
			}
		case "object":
			if r.Object() {
				t.Error("Object returns true for an array")
			}
		default:
			name = r.Value().String()
		}
	}
	relaytest.NoError(t, r.Close())
	relaytest.Equal(t, "the name", name, "kept")
}

func TestAValueThatIsNotReadIsSkipped(t *testing.T) {
	r := New([]byte(`{"a":{"x":[1,{}]},"b":[{"n":1},2,{"n":3}],"c":"kept","d":7}`))
	items, name := 0, ""
	for key := range r.Fields() {
		switch string(key) {
		case "b":
			for ok := r.Array(); ok && r.More(); {
				items++
			}
		case "c":
			if r.Kind() == String {
				name = r.Value().String()
			}
		}
	}
	relaytest.NoError(t, r.Close())
	relaytest.Equal(t, "the number of items", items, 3)
	relaytest.Equal(t, "the name", name, "kept")
}

func TestKeyReturnsTheOffsetsOfAKey(t *testing.T) {
	const body = ` {"plain":{"\u0061\\":1} , "":2}`
	r := New([]byte(body))
	var keys []string
	var read func()
	read = func() {
		for key := range r.Fields() {
			start, end := r.Key()
			keys = append(keys, body[start:end]+" is "+string(key))
			read()
		}
	}
	read()
	relaytest.NoError(t, r.Close())
	relaytest.Equal(t, "the keys", keys, []string{"plain is plain", `\u0061\\ is a\`, " is "})
}

// FuzzAny compares the reader with encoding/json: both accept the same texts, except for the
// depth limit and tolerated texts, and return the same values.
func FuzzAny(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00",true,false,null,{}]}`, `[`, `{"a":1,}`, `"\ud800"`, `1e400`, " [ ] ", `{"a":{"a":1,"a":2}}`,
		`-`, `0.`, `[1,2`, `"abcdefghijklmnop\"q"`, "\"\x1f\"", `nullx`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := New(body)
		got := r.Any()
		err := r.Close()
		if (err == nil) != (check(body) == nil) {
			t.Fatalf("Any returns the error %v, check %v", err, check(body))
		}
		var want any
		jsonErr := json.Unmarshal(body, &want)
		switch {
		case err != nil && jsonErr == nil && !strings.Contains(err.Error(), "deep"):
			t.Fatalf("valid JSON is refused: %v", err)
		case err == nil && jsonErr != nil && !tolerated(body, jsonErr):
			t.Fatalf("invalid JSON is accepted: %v", jsonErr)
		case err == nil && jsonErr == nil && utf8.Valid(body) && !reflect.DeepEqual(got, want):
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

// tolerated reports whether this package accepts a text that encoding/json refuses, because
// the text has a byte order mark or a number beyond float64.
func tolerated(body []byte, err error) bool {
	var typeError *json.UnmarshalTypeError
	return strings.HasPrefix(string(body), "\xef\xbb\xbf") || errors.As(err, &typeError)
}

func BenchmarkCheck(b *testing.B) {
	body := []byte(`{"deviceInfo":{"tenantId":"52f14cd4-c6f1-4fbd-8f87-4025e1d49242","devEui":"0101010101010101","tags":{"key":"value"}},` +
		strings.Repeat(`"rxInfo":[{"gatewayId":"0016c001f153a14c","uplinkId":4217106255,"rssi":-36,"snr":10.5,"context":"E3OWOQ=="}],`, 7) + `"dr":1}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := check(body); err != nil {
			b.Fatal(err)
		}
	}
}
