package condition

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func someMessage() Message {
	return Message{
		Originator: "447700900123", Destination: "447860000001", Text: "STOP it, 你", Coding: 16, Network: "Example",
		At: time.Date(2026, 7, 3, 9, 5, 0, 0, time.UTC), // a Friday
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
		if got, err := c.Holds(someMessage()); err != nil || got != want {
			t.Errorf("%s: %t, %v", source, got, err)
		}
	}
}

func TestConditionsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ source, says string }{
		"nothing":                         {"", "line 1, column 1: unexpected end of the expression"},
		"text":                            {"text", "expected bool"},
		"a name that is not there":        {"orignator == \"1\"", "line 1, column 1: unknown name orignator"},
		"a number for a text":             {"text == 1", "mismatched types"},
		"another line":                    {"coding == 7 and\n  colour == 1", "line 2, column 3: unknown name colour"},
		"a predicate":                     {"all([1, 2], # > 0)", "no predicates"},
		"a function that is not there":    {"repeat(text, 1000) == \"\"", "unknown name repeat"},
		"the clock":                       {"now().Year() == 2026", "unknown name now"},
		"let":                             {"let a = 1; a == 1", "no predicates and no let"},
		"a range":                         {"coding in 1..100000", "has no .."},
		"a text that grows":               {`text + text == ""`, "has no +"},
		"a pattern that is made":          {`text matches originator`, "must be a literal"},
		"a pattern that is none":          {`text matches "("`, "missing closing"},
		"a pattern that costs too much":   {`text matches "(a?){150}a{150}"`, "cost too much"},
		"patterns that cost too much":     {strings.TrimSuffix(strings.Repeat(`text matches "a" or `, 9), " or "), "cost too much"},
		"more than anybody writes":        {strings.Repeat("coding == 7 or ", 80) + "true", "longer than 1024 bytes"},
		"more nodes than anybody writes":  {strings.Repeat("!", 300) + "true", "exceeds maximum"},
		"a source that is no text":        {"text == \"\xff\"", "not UTF-8"},
		"a method of what holds the text": {"text.Len() == 1", "no method"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileFilter(tc.source)
			wantError(t, err, tc.says)
		})
	}
}

func wantError(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want …%s…", err, says)
	}
}

// The costliest condition that compiles, with the text for which it takes longest.
func TestConditionsAreQuick(t *testing.T) {
	s := someMessage()
	s.Text = strings.Repeat("a", 40_000)
	c, err := CompileFilter(`text matches "(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*(a|aa|aaa)*x" or text matches "(.*)(.*)(.*)(.*)(.*)(.*)(.*)y$"`)
	relaytest.NoError(t, err)
	best := time.Hour
	for range 5 {
		began := time.Now()
		if holds, err := c.Holds(s); holds || err != nil {
			t.Fatal(holds, err)
		}
		best = min(best, time.Since(began))
	}
	if best > 100*time.Millisecond {
		t.Errorf("it took %v", best)
	}
	t.Log(best)
}

func FuzzCondition(f *testing.F) {
	f.Add(`text matches "(?i)^stop"`, "STOP", "447700900123")
	f.Add(`[1,2][coding] == 1 or {"a":1}[text] == 1`, "x", "")
	f.Add(`weekday in [1,2] and time >= "09:00"`, "", "Bank")
	f.Fuzz(func(t *testing.T, source, text, from string) {
		c, err := CompileFilter(source)
		if err != nil {
			return
		}
		began := time.Now()
		first, err1 := c.Holds(Message{Text: text, Originator: from})
		again, err2 := c.Holds(Message{Text: text, Originator: from})
		if first != again || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%s: %t %v, then %t %v", source, first, err1, again, err2)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Fatalf("%s took %v", source, took)
		}
	})
}
