package javascript

import (
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// A result tells that its codec ran out of time from a codec that merely fails,
// wherever the time went.
func TestResultsSayThatTheTimeWasOver(t *testing.T) {
	for _, tc := range []struct {
		name, source string
		want         bool
	}{
		{"a codec that ends", body("return {data: {a: 1}}"), false},
		{"a codec that throws", body("throw new Error('the codec did not end within 100ms')"), false},
		{"a limit that is none of time", body("let s = 'xy'; for (;;) s += s"), false},
		{"a loop", body("for (;;);"), true},
		{"a loop that catches everything", body("for (;;) try { for (;;); } catch (e) {}"), true},
		{"a list that is walked for ever", body("let a = []; a.length = 4e9; return [...a]"), true},
		{"a result that loops when it is read", body("return {data: {get a() { for (;;); }}}"), true},
		{"a loop at the top level, for some frames", "if (new Date().getTime() > 0) for (;;);\n" + body("return {data: {a: 1}}"), true},
		{"a loop in what normalises", body("return {data: {a: 1}}") + "\nfunction normalizeUplink(i) { for (;;); }", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limit := 100 * time.Millisecond
			if !tc.want {
				limit = unhurried
			}
			c, err := Compile(tc.source, Options{TimeLimit: limit})
			relaytest.NoError(t, err)
			res, err := c.Decode(&decoders.Frame{Payload: []byte{1}, NetworkTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
			if res.OutOfTime != tc.want {
				t.Errorf("out of time %t, want %t (%v)", res.OutOfTime, tc.want, err)
			}
		})
	}
}
