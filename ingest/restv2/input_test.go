package restv2

import (
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// FuzzInput parses any body. A parameter is either read or refused, never both, and its value
// is valid UTF-8.
func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"action":"http_get","parameters":["https://a/?m=%m"]}`))
	f.Add([]byte(`{"action":1,"parameters":{"a":[]}}`))
	f.Add([]byte(`{"parameters":[null,"x"]} {}`))
	f.Add([]byte(`[[[`))
	f.Add([]byte(`{"destinations":[447700900123,"x"],"max_parts":7,"flash":true,"send_time":"2026-01-31 12:00:00","phone":{"home":"1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := parseObject(body)
		if err != nil {
			if len(relay.FieldsOf(err)["body"]) != 1 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		input := inputFrom(params.OfObject(members))
		name, texts := input.Text("action"), input.Texts("parameters")
		p := input.Problems
		if name != "" && p["action"] != nil {
			t.Fatalf("%q: the action %q was read and refused: %v", body, name, p)
		}
		if texts != nil && p["parameters"] != nil {
			t.Fatalf("%q: the parameters %q were read and refused: %v", body, texts, p)
		}
		for _, field := range []string{"destinations", "max_parts", "flash", "send_time"} {
			order := inputFrom(params.OfObject(members))
			numbers, parts, sendTime := order.numbers("destinations"), order.parts(), order.timestamp("send_time")
			_, q := order.flag("flash"), order.Problems
			if len(q[field]) > 1 {
				t.Fatalf("%q: %s is refused more than once: %v", body, field, q)
			}
			if q["max_parts"] == nil && (parts < 0 || parts > 255) {
				t.Fatalf("%q: %d parts, want 0 to 255", body, parts)
			}
			if q["send_time"] != nil && !sendTime.IsZero() {
				t.Fatalf("%q: the time %s was read and refused", body, sendTime)
			}
			texts = append(texts, numbers...)
		}
		_ = input.phones()
		for _, s := range append(texts, name) {
			if !utf8.ValidString(s) {
				t.Fatalf("%q: %q is not text", body, s)
			}
		}
	})
}

func inputFrom(get params.Source) input { return input{params.New(get, parameterName)} }
