package params

import (
	"encoding/json"
	"testing"
)

// FuzzInput reads a text as every type: each is a value or a problem, and a whole number
// of a query is that of a JSON body.
func FuzzInput(f *testing.F) {
	for _, text := range []string{"", "true", "1", "-3", "1e3", "1_0", "0x1p4", "1e-400", "9223372036854775808", "2026-11-26 12:00:00", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(value any) (in *Input, flag *bool, number *int64) {
			in = New(func(string) (any, bool) { return value, true }, func(name string) string { return name })
			return in, in.Flag("flag"), in.Integer("number")
		}
		in, flag, number := read(QueryText(text))
		if (flag == nil) != (text == "" || len(in.Problems["flag"]) > 0) {
			t.Errorf("the flag %q is %v with the problems %q", text, flag, in.Problems["flag"])
		}
		if (number == nil) != (text == "" || len(in.Problems["number"]) > 0) {
			t.Errorf("the number %q is %v with the problems %q", text, number, in.Problems["number"])
		}
		if in.Time("time", "a time").IsZero() && len(in.Problems["time"]) == 0 {
			t.Errorf("the time %q is neither refused nor a time", text)
		}
		if n := in.Int("limit", 10, 100, "from 1 to"); len(in.Problems["limit"]) == 0 && (n < 1 || n > 100) {
			t.Errorf("the limit %q is %d", text, n)
		}
		var body json.Number
		if text == "" || json.Unmarshal([]byte(text), &body) != nil {
			return
		}
		_, _, same := read(body)
		if (number == nil) != (same == nil) || number != nil && *number != *same {
			t.Errorf("the number %q is %v in a query and %v in a body", text, number, same)
		}
	})
}
