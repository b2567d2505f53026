package condition

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func FuzzRuleCondition(f *testing.F) {
	f.Add(`values.a > previous["b"] or event.c.d matches "^x"`, "a", "x", 3.5)
	f.Add(`(values?.a ?? 1) == 1 and now - uplink.time > duration("1h")`, "b", "", -1.0)
	f.Add(`[values, device][0].a == 1 ? device.name + values.a == "" : "k" in values`, "a", "k", 0.0)
	f.Fuzz(func(t *testing.T, source, key, word string, n float64) {
		c, err := CompileRule(source)
		if err != nil {
			return
		}
		s := testFrame()
		s.Values[key], s.Previous[word], s.Event[key] = n, word, map[string]any{word: strings.Repeat(word, 100)}
		startedAt := time.Now()
		holds1, err1 := c.Holds(&s)
		holds2, err2 := c.Holds(&s)
		if holds1 != holds2 || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%s: first run %t, %v; second run %t, %v", source, holds1, err1, holds2, err2)
		}
		if err1 != nil && holds1 {
			t.Fatalf("%s: the condition holds with the error %v", source, err1)
		}
		if took := time.Since(startedAt); took > 30*time.Second {
			t.Fatalf("%s took %v", source, took)
		}
	})
}

func FuzzRuleBody(f *testing.F) {
	f.Add(`{"a": values.a, "b": [previous, device.name + values.a]}`, "a", "x", 3.5)
	f.Add(`state == "raised" ? rule : uplink`, "", "é", 1e300)
	f.Fuzz(func(t *testing.T, source, key, word string, n float64) {
		b, err := CompileBody(source)
		if err != nil {
			return
		}
		s := testFrame()
		s.Values[key], s.Previous[word] = n, word
		body, err := b.JSON(s, map[string]any{"rule": map[string]any{"id": "r", "name": word}, "state": "raised", "alarm_id": "a"})
		if err == nil && (len(body) == 0 || len(body) > maxBodyOutput || !json.Valid(body)) {
			t.Fatalf("%s: invalid body of %d bytes: %.100s", source, len(body), body)
		}
	})
}

func BenchmarkRuleHolds(b *testing.B) {
	for name, source := range map[string]string{
		"threshold":              `values.temperature > 30`,
		"threshold and hour":     `values.temperature > 40 and hour >= 8`,
		"a change":               `values.temperature - previous.temperature > 10`,
		"a missing key":          `values.window > 30`,
		"a missing key after or": `values.temperature > 40 or values.window > 30`,
	} {
		b.Run(name, func(b *testing.B) {
			c, err := CompileRule(source)
			if err != nil {
				b.Fatal(err)
			}
			s := testFrame()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.Holds(&s)
			}
		})
	}
}
