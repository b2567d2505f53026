package inventory

import (
	_ "embed" // the meanings
	"strings"
)

//go:embed fields.txt
var fieldMeanings string

// meanings says of each field what it is for; a path ends its lists with [].
func meanings() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(fieldMeanings) {
		path, meaning, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[path] = meaning
	}
	return out
}
