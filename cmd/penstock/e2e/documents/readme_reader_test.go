package documents

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadConsole(t *testing.T) {
	document := strings.Join([]string{
		"# Title", "```console", "$ one", "reply", "", "more", "$ two \\", "  three", "$ four", "> five", "```",
		"<!-- not run: it needs a network -->", "", "```console", "$ skipped", "```", "text",
		"```sh", "$ not tagged", "```", "```console", "$ last", "```",
	}, "\n")
	want := []block{
		{line: 2, steps: []step{
			{line: 3, command: "one", reply: []string{"reply", "", "more"}},
			{line: 7, command: "two \\\n  three"},
			{line: 9, command: "four\nfive"},
		}},
		{line: 21, steps: []step{{line: 22, command: "last"}}},
	}
	relaytest.Equal(t, "the blocks to run", readConsole(t, document), want)
}

func TestLinesMatch(t *testing.T) {
	for _, tc := range []struct {
		name, pattern, got string
		match              bool
	}{
		{"equal lines", "a|b", "a|b", true},
		{"a different line", "a|b", "a|c", false},
		{"a missing line", "a|b", "a", false},
		{"an additional line", "a", "a|b", false},
		{"any text within a line", `{"id":"…","n":1}`, `{"id":"x.y","n":1}`, true},
		{"any text before a different end", `{"id":"…","n":1}`, `{"id":"x","n":2}`, false},
		{"characters of regular expressions are literal", "a.c", "abc", false},
		{"any lines", "a|…|z", "a|b|c|z", true},
		{"no lines in place of any lines", "a|…|z", "a|z", true},
		{"any lines at the end", "a|…", "a|b|c", true},
		{"any lines before a missing line", "a|…|z", "a|b", false},
		{"no lines", "", "", true},
		{"no lines in the pattern", "", "a", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := e2e.LinesMatch(trimLines(strings.Split(tc.pattern, "|")), trimLines(strings.Split(tc.got, "|"))); got != tc.match {
				t.Errorf("LinesMatch = %t, want %t", got, tc.match)
			}
		})
	}
}
