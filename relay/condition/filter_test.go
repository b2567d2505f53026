package condition

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func testMessage() Message {
	return Message{
		Originator: "447700900123", Destination: "447860000001", Text: "STOP it, 你", Coding: 16, Network: "Example",
		ReceivedAt: time.Date(2026, 7, 3, 9, 5, 0, 0, time.UTC), // a Friday
	}
}

func TestConditions(t *testing.T) {
	for source, want := range map[string]bool{
		`true`:                         true,
		`originator == "447700900123"`: true,
		`originator startsWith "44" and not (destination endsWith "2")`:      true,
		`text matches "(?i)^stop\\b"`:                                        true,
		`text contains "你" && coding == 16`:                                  true,
		`lower(text) contains "stop" ? network != "" : false`:                true,
		`time >= "09:00" and time < "17:30" and weekday <= 5`:                true,
		`date == "2026-07-03" and weekday == 5`:                              true,
		`weekday in [6, 7]`:                                                  false,
		`originator in ["1", "2"] or len(text) < 3`:                          false,
		`hasPrefix(trim(text), "STOP") and upper(text) startsWith "STOP"`:    true,
		`indexOf(text, "it") == 5 // what follows is a comment`:              true,
		"coding == 7\n  or coding == 16":                                     true,
		`text startsWith "x" or (text endsWith "你" and destination != "")`:   true,
		`{"a": coding}["a"] == 16`:                                           true,
		`[originator, destination][0] == "447700900123" and [1, 2][-1] == 2`: true,
	} {
		c, err := CompileFilter(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := c.Holds(testMessage()); err != nil || got != want {
			t.Errorf("%s: got %t, want %t; %v", source, got, want, err)
		}
	}
}

func TestInvalidConditionsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ source, message string }{
		"an empty source":                 {"", "line 1, column 1: unexpected end of the expression"},
		"text":                            {"text", "expected bool"},
		"an unknown name":                 {"orignator == \"1\"", "line 1, column 1: unknown name orignator"},
		"a number for a string":           {"text == 1", "mismatched types"},
		"an unknown name in line 2":       {"coding == 7 and\n  colour == 1", "line 2, column 3: unknown name colour"},
		"a predicate":                     {"all([1, 2], # > 0)", "no predicates"},
		"an unknown function":             {"repeat(text, 1000) == \"\"", "unknown name repeat"},
		"the clock":                       {"now().Year() == 2026", "unknown name now"},
		"let":                             {"let a = 1; a == 1", "no predicates and no let"},
		"a range":                         {"coding in 1..100000", "has no .."},
		"a + between strings":             {`text + text == ""`, "has no +"},
		"a pattern that is not a literal": {`text matches originator`, "must be a literal"},
		"an invalid pattern":              {`text matches "("`, "missing closing"},
		"a pattern that costs too much":   {`text matches "(a?){150}a{150}"`, "cost too much"},
		"patterns that cost too much":     {strings.TrimSuffix(strings.Repeat(`text matches "a" or `, 9), " or "), "cost too much"},
		"a source that is too long":       {strings.Repeat("coding == 7 or ", 80) + "true", "longer than 1024 bytes"},
		"too many nodes":                  {strings.Repeat("!", 300) + "true", "exceeds maximum"},
		"a source that is not UTF-8":      {"text == \"\xff\"", "not UTF-8"},
		"a method of a string":            {"text.Len() == 1", "no method"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileFilter(tc.source)
			wantError(t, err, tc.message)
		})
	}
}

func wantError(t *testing.T, err error, message string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want …%s…", err, message)
	}
}

// BenchmarkCostliestCondition shows how long a message can occupy a gateway: the condition is the
// costliest one that compiles, with the text for which it takes longest. The aim is 100 ms.
func BenchmarkCostliestCondition(b *testing.B) {
	m := testMessage()
	m.Text = strings.Repeat("a", 40_000)
	c, err := CompileFilter(`text matches "(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*x" or text matches "(.*)(.*)(.*)(.*)(.*)(.*)(.*)y$"`)
	relaytest.NoError(b, err)
	for b.Loop() {
		if holds, err := c.Holds(m); holds || err != nil {
			b.Fatal(holds, err)
		}
	}
}

func FuzzCondition(f *testing.F) {
	f.Add(`text matches "(?i)^stop"`, "STOP", "447700900123")
	f.Add(`[1,2][coding] == 1 or {"a":1}[text] == 1`, "x", "")
	f.Add(`weekday in [1,2] and time >= "09:00"`, "", "Bank")
	f.Fuzz(func(t *testing.T, source, text, originator string) {
		c, err := CompileFilter(source)
		if err != nil {
			return
		}
		startedAt := time.Now()
		holds1, err1 := c.Holds(Message{Text: text, Originator: originator})
		holds2, err2 := c.Holds(Message{Text: text, Originator: originator})
		if holds1 != holds2 || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%s: first run %t, %v; second run %t, %v", source, holds1, err1, holds2, err2)
		}
		if took := time.Since(startedAt); took > 30*time.Second {
			t.Fatalf("%s took %v", source, took)
		}
	})
}
