package restv2

import (
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// Whatever a body holds, it is read or refused with the parameters named, and
// what is read of it is text.
func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"action":"http_get","parameters":["https://a/?m=%m"]}`))
	f.Add([]byte(`{"action":1,"parameters":{"a":[]}}`))
	f.Add([]byte(`{"parameters":[null,"x"]} {}`))
	f.Add([]byte(`[[[`))
	f.Add([]byte(`{"destinations":[447700900123,"x"],"max_parts":7,"flash":true,"send_time":"2026-01-31 12:00:00","phone":{"home":"1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := object(body)
		if err != nil {
			if len(relay.FieldsOf(err)["body"]) != 1 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		in := inputFrom(params.OfObject(members))
		name, list := in.Text("action"), in.Texts("parameters")
		p := in.Problems
		if name != "" && p["action"] != nil {
			t.Fatalf("%q: the action %q was read and refused: %v", body, name, p)
		}
		if list != nil && p["parameters"] != nil {
			t.Fatalf("%q: the parameters %q were read and refused: %v", body, list, p)
		}
		for _, field := range []string{"destinations", "max_parts", "flash", "send_time"} {
			again := inputFrom(params.OfObject(members))
			numbers, parts, at := again.numbers("destinations"), again.parts(), again.timestamp("send_time")
			_, q := again.flag("flash"), again.Problems
			if len(q[field]) > 1 {
				t.Fatalf("%q: %s is refused more than once: %v", body, field, q)
			}
			if q["max_parts"] == nil && (parts < 0 || parts > 255) {
				t.Fatalf("%q: %d parts, want 0 to 255", body, parts)
			}
			if q["send_time"] != nil && !at.IsZero() {
				t.Fatalf("%q: the time %s was read and refused", body, at)
			}
			list = append(list, numbers...)
		}
		_ = in.phones()
		for _, s := range append(list, name) {
			if !utf8.ValidString(s) {
				t.Fatalf("%q: %q is not text", body, s)
			}
		}
	})
}

func inputFrom(get params.Source) input { return input{params.New(get, parameterName)} }
