package catalog

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestDocumentedExamples checks the examples of docs/decoders.md: a source, a payload and readings.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/decoders.md")
	relaytest.NoError(t, err)
	examples := regexp.MustCompile("(?s)```(expr|javascript)\n(.*?)```\n```payload\n(.*?)```\n```readings\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if fences := strings.Count(string(page), "```"); len(examples) < 3 || fences != 6*len(examples) {
		t.Fatalf("%d examples with %d fences, want at least 3 with 6 fences each", len(examples), fences)
	}
	for i, example := range examples {
		t.Run(fmt.Sprintf("example %d, %s", i+1, example[1]), func(t *testing.T) {
			payload, err := hex.DecodeString(strings.Join(strings.Fields(example[3]), ""))
			relaytest.NoError(t, err)
			d, err := testCatalog.Compile(example[1], example[2], true)
			relaytest.NoError(t, err)
			res, err := d.Decode(&decoders.Frame{Payload: payload, FPort: 1, HasFPort: true})
			if got := formatResult(res); err != nil || sorted(got) != sorted(example[4]) {
				t.Errorf("got\n%swant\n%serror %v", got, example[4], err)
			}
		})
	}
}

func TestEveryCodecIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/decoders.md")
	relaytest.NoError(t, err)
	for _, name := range Names() {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("codec %s is missing", name)
		}
	}
}

func formatResult(res decoders.Result) string {
	var b strings.Builder
	for _, r := range res.Readings {
		value := fmt.Sprint(r.Value)
		if r.IsText {
			value = strconv.Quote(r.Text)
		}
		fmt.Fprintf(&b, "%s = %s", r.Key, value)
		if !r.Time.IsZero() {
			b.WriteString(" at " + r.Time.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, w := range res.Warnings {
		b.WriteString("warnings: " + w + "\n")
	}
	return b.String()
}

// sorted sorts the lines of text, because expr returns readings in the order of its source.
func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}
