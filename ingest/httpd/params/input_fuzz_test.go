package params

import (
	"encoding/json"
	"testing"
)

// FuzzInput reads a text as every type. Each result must be a value or a problem, and an integer in
// a query must equal the same integer in a JSON body.
func FuzzInput(f *testing.F) {
	for _, text := range []string{"", "true", "1", "-3", "1e3", "1_0", "0x1p4", "1e-400", "9223372036854775808", "2026-11-26 12:00:00", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(value any) (input *Input, flag *bool, number *int64) {
			input = New(func(string) (any, bool) { return value, true }, func(name string) string { return name })
			return input, input.Bool("flag"), input.Integer("number")
		}
		input, flag, number := read(QueryText(text))
		if (flag == nil) != (text == "" || len(input.Problems["flag"]) > 0) {
			t.Errorf("flag %q = %v with problems %q", text, flag, input.Problems["flag"])
		}
		if (number == nil) != (text == "" || len(input.Problems["number"]) > 0) {
			t.Errorf("integer %q = %v with problems %q", text, number, input.Problems["number"])
		}
		if input.Time("time", "a time").IsZero() && len(input.Problems["time"]) == 0 {
			t.Errorf("time %q = zero time without a problem", text)
		}
		if n := input.Int("limit", 10, 100, "from 1 to"); len(input.Problems["limit"]) == 0 && (n < 1 || n > 100) {
			t.Errorf("limit %q = %d, want 1 to 100", text, n)
		}
		var body json.Number
		if text == "" || json.Unmarshal([]byte(text), &body) != nil {
			return
		}
		_, _, bodyNumber := read(body)
		if (number == nil) != (bodyNumber == nil) || number != nil && *number != *bodyNumber {
			t.Errorf("integer %q = %v in a query, %v in a body", text, number, bodyNumber)
		}
	})
}
