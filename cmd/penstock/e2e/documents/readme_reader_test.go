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

func TestAgrees(t *testing.T) {
	for _, tc := range []struct {
		name, promised, got string
		agrees              bool
	}{
		{"the same", "a|b", "a|b", true},
		{"another line", "a|b", "a|c", false},
		{"a line less", "a|b", "a", false},
		{"a line more", "a", "a|b", false},
		{"anything within a line", `{"id":"…","n":1}`, `{"id":"x.y","n":1}`, true},
		{"anything, but the end is different", `{"id":"…","n":1}`, `{"id":"x","n":2}`, false},
		{"characters of regular expressions are literal", "a.c", "abc", false},
		{"any lines", "a|…|z", "a|b|c|z", true},
		{"any lines may be none", "a|…|z", "a|z", true},
		{"any lines at the end", "a|…", "a|b|c", true},
		{"any lines, but the last is missing", "a|…|z", "a|b", false},
		{"no lines", "", "", true},
		{"no lines were promised", "", "a", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := e2e.LinesMatch(trimmed(strings.Split(tc.promised, "|")), trimmed(strings.Split(tc.got, "|"))); got != tc.agrees {
				t.Errorf("LinesMatch is %t, want %t", got, tc.agrees)
			}
		})
	}
}
